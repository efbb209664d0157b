from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from rival_places import changed, changed_part, merge_case, sure_update

from apply_service.prompts.profile import Profile, load_profile
from training.adapter_model import AdapterModel, choice_log_probs
from training.case_file import write_cases
from training.decisions import (
    Candidate,
    Decided,
    answers_of,
    decide,
    decide_all,
    decision_report,
    main,
)
from training.example import Example, TokenChoice
from training.served import questions_of

pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")


@pytest.fixture(scope="module")
def profile(tiny_model_dir: Path) -> Profile:
    return load_profile("embedded", tiny_model_dir)


@pytest.fixture(scope="module")
def model(tiny_model_dir: Path) -> AdapterModel:
    return AdapterModel(tiny_model_dir, rank=2, alpha=4, seed=0)


def test_the_answers_are_the_valid_merges(profile: Profile) -> None:
    (question,) = questions_of(merge_case(), profile)
    asked = question.region_prompt
    assert asked.constraint is not None
    answers = answers_of(asked.constraint.grammar())
    texts = [asked.prompt.parse_answer(answer) for answer in answers]
    assert len(texts) == len({tuple(text) for text in texts}) >= 2
    for method in ("load", "save"):
        assert changed_part(changed(method), asked.region) in texts
    assert len(answers_of(asked.constraint.grammar(), limit=1)) == 1


def test_branches_of_answers_together_are_those_of_each_alone(model: AdapterModel) -> None:
    """The shared beginning is computed once; the log-probabilities stay the same."""
    prompt = tuple(range(40, 60))
    first, second = TokenChoice(3, (7, 9)), TokenChoice(5, (1, 2, 3))
    examples = [
        Example("", "", prompt, (4, 5, 6, 7), (first,)),
        Example("", "", prompt, (4, 5, 6, 9, 8, 2), (first, second)),
        Example("", "", prompt, (4, 5, 6, 9, 8, 3), (first, second)),
    ]
    together = model.branch_log_probs(examples)
    for example, found in zip(examples, together, strict=True):
        alone = list(choice_log_probs(model.answer_logits(example), example))
        assert [taken for _, taken in found] == [taken for _, taken in alone]
        for (branches, _), (expected, _) in zip(found, alone, strict=True):
            assert torch.allclose(branches, expected, atol=1e-5)
            assert float(branches.exp().sum()) == pytest.approx(1.0)


def test_a_choice_at_the_very_first_token_needs_no_shared_answer(model: AdapterModel) -> None:
    choice = TokenChoice(0, (3, 8))
    examples = [Example("", "", (1, 2), (token,), (choice,)) for token in (3, 8)]
    found = model.branch_log_probs(examples)
    assert sum(float(branches[taken].exp()) for ((branches, taken),) in found) == pytest.approx(1)


@pytest.mark.parametrize("method", ["load", "save"])
def test_the_candidates_hold_the_truth_and_the_first_guess(
    profile: Profile, model: AdapterModel, method: str
) -> None:
    case = merge_case(method)
    (question,) = questions_of(case, profile)
    decided = decide(question, case, model)
    assert decided is not None
    assert decided.is_known
    assert sum(one.is_truth for one in decided.candidates) == 1
    assert sum(one.is_first_guess for one in decided.candidates) == 1
    assert sum(one.is_greedy for one in decided.candidates) == 1
    heaviest = max(decided.candidates, key=lambda one: one.weight)
    assert heaviest.is_first_guess
    assert all(one.log_prob < 0 for one in decided.candidates)


def test_a_sure_place_is_no_decision(profile: Profile, model: AdapterModel) -> None:
    sure = merge_case(update=sure_update("save"))
    assert list(decide_all([sure], profile, model)) == []
    cases = [sure, merge_case()]
    (decided,) = decide_all(cases, profile, model)
    longest = decided.num_prompt_tokens
    assert list(decide_all(cases, profile, model, max_prompt_tokens=longest)) == [decided]
    assert list(decide_all(cases, profile, model, max_prompt_tokens=longest - 1)) == []


def decided_of(*candidates: tuple[float, float, bool, bool]) -> Decided:
    made = [
        Candidate(log_prob, weight, log_prob > -0.5, weight > 1.5, is_truth, is_first)
        for log_prob, weight, is_truth, is_first in candidates
    ]
    return Decided("case", "context", 100, tuple(made))


def test_the_report_counts_right_decisions() -> None:
    model_knows = decided_of((-0.1, 1.0, True, False), (-2.0, 2.0, False, True))
    merge_knows = decided_of((-0.1, 1.0, False, False), (-2.0, 2.0, True, True))
    unknown = decided_of((-0.1, 1.0, False, True), (-2.0, 0.5, False, False))
    found = decision_report([model_knows, model_knows, merge_knows, unknown])
    counts = {name: (share["num_exact"], share["n"]) for name, share in found.items()}
    assert counts["known"] == (3, 4)
    assert counts["first_guess"] == (1, 3)
    assert counts["summed"] == counts["greedy"] == (2, 3)
    assert counts["served"] == (1, 3)
    assert counts["summed_where_first_guess_is_wrong"] == (2, 2)
    assert counts["summed_where_first_guess_is_right"] == (0, 1)
    assert counts["summed_with_1_merge"] == (2, 3)
    assert counts["summed_with_4_merge"] == (1, 3)


def test_the_command_prints_shares_and_writes_records(
    tiny_model_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = [merge_case(method, name=method) for method in ("load", "save")]
    write_cases(tmp_path / "dev.jsonl", cases)
    records = tmp_path / "records.jsonl"
    arguments = ["--base", tiny_model_dir, "--cases", tmp_path / "dev.jsonl"]
    assert main([*map(str, arguments), "--records", str(records)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["first_guess"]["num_exact"], printed["first_guess"]["n"]) == (1, 2)
    lines = [json.loads(line) for line in records.read_text(encoding="utf-8").splitlines()]
    assert [line["case_id"] for line in lines] == ["load", "save"]
    main([*map(str, arguments), "--every", "2", "--records", str(records)])
    assert records.read_text(encoding="utf-8").count("\n") == 1
