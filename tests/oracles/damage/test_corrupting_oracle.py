from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from oracles.damage.corrupting_oracle import CorruptingOracle

from apply_service.evaluate.cases.case_file import Case
from apply_service.prompts.profile import Prompt, PromptRequest, load_profile
from batching.request import EngineRequest, SamplingParams

ORIGINAL = [f"line {number}" for number in range(30)]
EXPECTED = [*ORIGINAL[:3], "new a", *ORIGINAL[3:20], "new b", *ORIGINAL[22:]]
CASE = Case(
    id="case",
    path="a.txt",
    original="\n".join(ORIGINAL) + "\n",
    update="// ... existing code ...\nline 2\nnew a\n// ... existing code ...\nline 19\nnew b\n",
    expected="\n".join(EXPECTED) + "\n",
)


def oracle_of(model_dir: Path, *, share: float) -> CorruptingOracle:
    oracle = CorruptingOracle(load_profile("embedded", model_dir), share=share)
    oracle.begin(CASE)
    return oracle


def ask(oracle: CorruptingOracle, *parts: Sequence[str]) -> list[list[str]]:
    """Build prompts for parts of the file, submit them, and read what the model will write."""
    prompts = [oracle.profile.build(PromptRequest(part, ["new"], [])) for part in parts]
    answers = []
    for number, prompt in enumerate(prompts):
        request_id = f"{len(oracle.kinds)}-{number}"
        oracle.prepare_answer(
            EngineRequest(
                request_id=request_id,
                prompt_token_ids=tuple(prompt.token_ids),
                sampling=SamplingParams(max_tokens=1),
            )
        )
        answers.append(lines_of(prompt, oracle.runner.answer_to(request_id)))
    return answers


def lines_of(prompt: Prompt, answer: Sequence[int]) -> list[str]:
    end = next(at for at, token in enumerate(answer) if token in prompt.stop_token_ids)
    return prompt.parse_answer(answer[: end + 1])


def test_a_prompt_for_the_file_is_answered_with_the_file(tiny_model_dir: Path) -> None:
    assert ask(oracle_of(tiny_model_dir, share=0.0), ORIGINAL) == [EXPECTED]


def test_prompts_for_regions_are_answered_with_their_regions(tiny_model_dir: Path) -> None:
    first, second = ask(oracle_of(tiny_model_dir, share=0.0), ORIGINAL[:8], ORIGINAL[15:25])
    assert first == [*ORIGINAL[:3], "new a", *ORIGINAL[3:8]]
    assert second == [*ORIGINAL[15:20], "new b", *ORIGINAL[22:25]]


def test_a_wider_attempt_is_one_of_its_own(tiny_model_dir: Path) -> None:
    oracle = oracle_of(tiny_model_dir, share=0.0)
    ask(oracle, ORIGINAL[:8])
    assert ask(oracle, ORIGINAL) == [EXPECTED]
    assert oracle.kinds == [None, None]


def test_prompts_that_were_built_and_not_submitted_do_no_harm(tiny_model_dir: Path) -> None:
    oracle = oracle_of(tiny_model_dir, share=0.0)
    for part in (ORIGINAL[:8], ORIGINAL[15:25]):
        oracle.profile.build(PromptRequest(part, ["new"], []))
    first, second = ask(oracle, ORIGINAL[:10], ORIGINAL[12:])
    assert [*first, *ORIGINAL[10:12], *second] == EXPECTED


def test_a_share_of_the_answers_is_corrupted(tiny_model_dir: Path) -> None:
    oracle = oracle_of(tiny_model_dir, share=0.5)
    answers = [ask(oracle, ORIGINAL)[0] for _ in range(60)]
    corrupted = [answer for answer in answers if answer != EXPECTED]
    assert len(corrupted) == sum(kind is not None for kind in oracle.kinds)
    assert 15 <= len(corrupted) <= 45
    assert len({kind for kind in oracle.kinds if kind}) > 5


def test_the_same_seed_corrupts_the_same_way(tiny_model_dir: Path) -> None:
    first, second = (
        [ask(oracle, ORIGINAL) for _ in range(10)]
        for oracle in (oracle_of(tiny_model_dir, share=0.5), oracle_of(tiny_model_dir, share=0.5))
    )
    assert first == second


def test_a_case_must_be_known(tiny_model_dir: Path) -> None:
    oracle = CorruptingOracle(load_profile("embedded", tiny_model_dir), share=0.0)
    with pytest.raises(AssertionError, match="begin"):
        ask(oracle, ORIGINAL)
