"""Decisions in words: which line, which branches, where they come from, how probable."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from oracle_service import OracleService
from pipeline_session import functions, make_edit, make_plan, outcome_of, run_edit, tries_of

from apply_service.apply.constrained_reading import branch_probabilities
from apply_service.apply.decision import Decision
from apply_service.apply.outcome import Outcome
from batching.events import RowEvidence

ORIGINAL = "a = 1\nb = 1\n\na = 1\nc = 1\n"
UPDATE = "# ...\na = 1\nprint(a, end=None)\n# ...\n"
FIRST = ["a = 1", "print(a, end=None)", "b = 1", "", "a = 1", "c = 1"]
SECOND = ["a = 1", "b = 1", "", "a = 1", "print(a, end=None)", "c = 1"]


@pytest.fixture(autouse=True)
def _few_rivals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only places that fit nearly as well as the best one are offered."""
    monkeypatch.setattr("apply_service.apply.merge_constraint.MAX_WEIGHT_GAP", 5.0)


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
        (3, "b = 1", "keeps line 2 of the original", [": keeps line 3 of the original"]),
    ]
    oracle.will_answer(SECOND)
    assert [in_words(decision) for decision in outcome(oracle).decisions] == [
        (
            2,
            "b = 1",
            "keeps line 2 of the original",
            ["print(a, end=None): takes line 3 of the update"],
        ),
        (6, "c = 1", "keeps line 5 of the original", [": ends the file"]),
    ]


@pytest.mark.parametrize("max_draft_tokens", [0, 64])
def test_probabilities_are_of_the_branches(oracle: OracleService, max_draft_tokens: int) -> None:
    oracle.will_answer(SECOND)
    oracle.runner.sureness, oracle.runner.outside_mass = 0.75, 0.5
    result = outcome(oracle, max_draft_tokens=max_draft_tokens)
    assert len(result.decisions) == 2
    for decision in result.decisions:
        assert decision.probability == decision.chosen.probability == pytest.approx(0.75)
        assert [one.probability for one in decision.alternatives] == [pytest.approx(0.25)]
        assert decision.outside_mass == 0.5
        assert decision.segments == {0}
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


def test_lines_of_a_region_are_counted_in_the_file(oracle: OracleService) -> None:
    """The region begins far down the file, and an earlier one has made the file longer."""
    names = [f"part_{number:02d}" for number in range(43)]
    lines = functions(names).split("\n")[:-1]
    place = lines.index("def part_38(value):")
    lines[place + 1 : place + 1] = [
        "    check(value)",
        "    a = 1",
        "    check(value)",
        "    b = 1",
    ]
    added = ["    print(3)", "    print(33)"]
    near = lines.index("    total_part_03 = value + 3") + 1
    update = (
        f"# ...\n{lines[near - 1]}\n{added[0]}\n{added[1]}\n{lines[near]}\n# ...\n"
        "def part_38(value):\n# ...\n    check(value)\n    new(value)\n# ...\n"
    )
    second = lines.index("    check(value)", place + 2)
    merged = [*lines[:near], *added, *lines[near : second + 1], "    new(value)"]
    merged += lines[second + 1 :]
    edit = make_edit("\n".join([*lines, ""]), update, constraint="merge", scope="region")
    first, last = tries_of(make_plan(edit), oracle)[0].regions
    oracle.will_rewrite(first.start, first.end, merged[first.start : first.end + 2])
    oracle.will_rewrite(last.start, last.end, merged[last.start + 2 : last.end + 3])
    result = outcome_of(run_edit(oracle, edit))
    assert list(result.lines) == merged
    assert result.regions == (first, last)
    texts = list(result.lines)
    assert result.decisions
    for decision in result.decisions:
        assert texts[decision.line - 1] == decision.chosen.text
    words = [word for decision in result.decisions for word in in_words(decision)[3]]
    assert "    new(value): takes line 10 of the update" in words
