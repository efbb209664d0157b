"""On the embedded model, too, speculation changes no token. Needs `apply-service model prepare`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from case_files import case_file
from engine_runs import RunningEngine, running_engine
from parity import Difference, check_parity

from apply_service.apply.engine_requests import default_max_tokens, drafts_of
from apply_service.edit.read.markers import split_segments
from apply_service.evaluate.cases.case_file import Case, read_cases
from apply_service.models.store import resolve_model
from apply_service.prompts.profile import Prompt, PromptRequest, load_profile
from batching.config import EngineConfig
from batching.request import EngineRequest, SamplingParams

SHORT_EDITS = case_file("short_edits")
TEST_CASES = Path(__file__).parents[2] / "build" / "cases" / "test.jsonl"
MAX_FILE_CHARACTERS = 2400


def build_prompts(cases: Sequence[Case]) -> list[Prompt]:
    location = resolve_model("embedded")
    profile = load_profile(location.profile, location.path)
    prompts = []
    for case in cases:
        original = case.original.removesuffix("\n").split("\n")
        update = case.update.removesuffix("\n").split("\n")
        segments = split_segments(update, original)
        prompts.append(profile.build(PromptRequest(original, update, segments)))
    return prompts


def generate(
    running: RunningEngine, prompts: Sequence[Prompt], *, k: int, batch: int, max_tokens: int
) -> list[list[int]]:
    answers: list[list[int]] = []
    for start in range(0, len(prompts), batch):
        requests = [
            EngineRequest(
                request_id=f"case-{start + offset}",
                prompt_token_ids=tuple(prompt.token_ids),
                sampling=SamplingParams(
                    max_tokens=min(max_tokens, default_max_tokens(prompt)),
                    stop_token_ids=prompt.stop_token_ids,
                ),
                proposer=drafts_of(prompt) if k else None,
                max_draft_tokens=k,
                cache_salt=f"{k}-{batch}".encode(),
            )
            for offset, prompt in enumerate(prompts[start : start + batch])
        ]
        answers += [outcome.token_ids for outcome in running.run(requests)]
    return answers


def compare_runs(cases: Sequence[Case], *, k: int, batch: int, max_tokens: int) -> list[Difference]:
    """The near-ties at which speculation in batches differs from single tokens one at a time."""
    prompts = build_prompts(cases)
    model_dir = resolve_model("embedded").path
    with running_engine(EngineConfig(model_path=model_dir)) as running:
        plain = generate(running, prompts, k=0, batch=1, max_tokens=max_tokens)
        speculated = generate(running, prompts, k=k, batch=batch, max_tokens=max_tokens)
    token_ids = [prompt.token_ids for prompt in prompts]
    return check_parity(model_dir, token_ids, plain, speculated)


# An answer takes several drafts; each token without one costs a whole pass.
@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("num_cases", "k", "max_tokens"),
    [(4, 16, 24), pytest.param(8, 64, 96, marks=pytest.mark.slow)],
)
def test_short_edits_keep_every_token(num_cases: int, k: int, max_tokens: int) -> None:
    cases = list(read_cases(SHORT_EDITS))[:num_cases]
    assert len(cases) == num_cases
    compare_runs(cases, k=k, batch=4, max_tokens=max_tokens)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_fifty_real_cases_keep_every_token() -> None:
    cases = [case for case in read_cases(TEST_CASES) if len(case.original) < MAX_FILE_CHARACTERS][
        :50
    ]
    assert len(cases) == 50, "run `make cases` first"
    differences = compare_runs(cases, k=64, batch=8, max_tokens=96)
    print(f"{len(differences)} near-ties in 50 cases: {differences}")
