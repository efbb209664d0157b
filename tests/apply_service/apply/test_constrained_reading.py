"""Decisions in words: which line, which branches, where they come from, how probable."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from oracle_service import OracleService
from pipeline_session import make_edit, outcome_of, run_edit

from apply_service.apply.constrained_reading import branch_probabilities
from apply_service.apply.decision import Decision
from apply_service.apply.outcome import Outcome
from apply_service.edit.place.merge import MergePlan, plan_merge
from batching.events import RowEvidence

ORIGINAL = "a = 1\nb = 1\n\na = 1\nc = 1\n"
UPDATE = "# ...\na = 1\nprint(a, end=None)\n# ...\n"
FIRST = ["a = 1", "print(a, end=None)", "b = 1", "", "a = 1", "c = 1"]
SECOND = ["a = 1", "b = 1", "", "a = 1", "print(a, end=None)", "c = 1"]


@pytest.fixture(autouse=True)
def _two_merges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the merges of a plan those that these tests speak of are left."""
    module = "apply_service.apply.planning.edit_plan"

    def planned(*args: object, **options: object) -> MergePlan:
        plan = plan_merge(*args, **options)  # type: ignore[arg-type]
        numbers = [n for n, merge in enumerate(plan.merges) if list(merge) in (FIRST, SECOND)]
        if len(numbers) < 2:
            return plan
        weights = [math.exp(plan.weights[number]) for number in numbers]
        return replace(
            plan,
            merges=tuple(plan.merges[number] for number in numbers),
            weights=tuple(math.log(weight / sum(weights)) for weight in weights),
            certainty=0.5,
        )

    monkeypatch.setattr(f"{module}.plan_merge", planned)


@pytest.fixture
def oracle(tiny_model_dir: Path) -> OracleService:
    return OracleService(tiny_model_dir, max_position=40_000, num_blocks=4096)


def outcome(oracle: OracleService, **options: object) -> Outcome:
    return outcome_of(run_edit(oracle, make_edit(ORIGINAL, UPDATE, constraint="merge", **options)))


def in_words(decision: Decision) -> tuple[int, str, str, list[str]]:
    others = [f"{one.text}: {one.origin}" for one in decision.alternatives]
    return decision.line, decision.chosen.text, decision.chosen.origin, others


def test_a_person_reads_which_line_was_taken_and_which_were_not(oracle: OracleService) -> None:
    oracle.will_answer(FIRST)
    result = outcome(oracle)
    assert list(result.lines) == FIRST
    assert [in_words(decision) for decision in result.decisions] == [
        (
            2,
            "print(a, end=None)",
            "takes line 3 of the update",
            ["b = 1: keeps line 2 of the original"],
        ),
    ]
    oracle.will_answer(SECOND)
    assert [in_words(decision) for decision in outcome(oracle).decisions] == [
        (
            2,
            "b = 1",
            "keeps line 2 of the original",
            ["print(a, end=None): takes line 3 of the update"],
        ),
    ]


@pytest.mark.parametrize("max_draft_tokens", [0, 64])
def test_probabilities_are_of_the_branches(oracle: OracleService, max_draft_tokens: int) -> None:
    oracle.will_answer(SECOND)
    oracle.runner.sureness, oracle.runner.outside_mass = 0.75, 0.5
    result = outcome(oracle, max_draft_tokens=max_draft_tokens)
    assert len(result.decisions) == 1
    for decision in result.decisions:
        assert decision.probability == decision.chosen.probability == pytest.approx(0.75)
        assert [one.probability for one in decision.alternatives] == [pytest.approx(0.25)]
        assert decision.outside_mass == 0.5
    assert result.confidence == pytest.approx(0.75)


def row_of(logprobs: tuple[float, float], log_prior: tuple[float, float]) -> RowEvidence:
    return RowEvidence(
        position=3,
        token_id=7,
        allowed_token_ids=(5, 7),
        logprobs=logprobs,
        outside_mass=0.1,
        is_decision=True,
        log_prior=log_prior,
    )


def test_a_prior_counts_like_what_the_model_said() -> None:
    row = row_of((-1.0, -3.0), (-2.0, 0.0))
    assert branch_probabilities(row) == {5: pytest.approx(0.5), 7: pytest.approx(0.5)}


def test_a_temperature_softens_what_is_said_and_changes_no_choice() -> None:
    row = row_of((-3.0, -1.0), (-4.0, 0.0))
    softened = branch_probabilities(row, prior_scale=3.0, temperature=2.0)
    assert softened[7] == pytest.approx(1 / (1 + math.exp(-(2.0 + 4.0) / 3.0 / 2.0)))
    assert branch_probabilities(row, prior_scale=3.0)[7] > softened[7] > 0.5
