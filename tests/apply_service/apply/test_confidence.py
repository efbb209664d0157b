"""What a model's certainty does to a verdict: places confirmed, doubts told."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from oracle_service import OracleService
from pipeline_session import make_edit, outcome_of, run_edit
from verdict_examples import ROOT, Example, read_examples

from apply_service.apply.edit_request import EditRequest, SamplingOptions
from apply_service.apply.outcome import Outcome
from apply_service.edit.place.merge import MergePlan, plan_merge

ORIGINAL = "a = 1\nb = 1\n\na = 1\nc = 1\n"
UPDATE = "# ...\na = 1\nprint(a, end=None)\n# ...\n"
FIRST = ["a = 1", "print(a, end=None)", "b = 1", "", "a = 1", "c = 1"]
SECOND = ["a = 1", "b = 1", "", "a = 1", "print(a, end=None)", "c = 1"]
UNSURE = make_edit(ORIGINAL, UPDATE, constraint="merge")
# Both ends of the update stand once in the file: one valid merge, and no decision.
CERTAIN = make_edit(
    "def shout(path):\n    base = clean(path)\n    return base.upper()\n",
    "# ...\n    base = clean(path)\n    print(base)\n    return base.upper()\n",
    constraint="merge",
)
CERTAIN_LINES = ["def shout(path):", "    base = clean(path)", "    print(base)"]
CERTAIN_LINES += ["    return base.upper()"]
EXAMPLES = [example for example in read_examples() if example.told is not None]


@pytest.fixture(autouse=True)
def _two_merges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the merges of a plan those that these tests speak of are left."""
    module = "apply_service.apply.planning.edit_plan"

    def planned(*args: object, **options: object) -> MergePlan:
        plan = plan_merge(*args, **options)  # type: ignore[arg-type]
        found = [merge for merge in plan.merges if list(merge) in (FIRST, SECOND)]
        if len(found) == 2:
            return replace(plan, merges=tuple(found), weights=(math.log(0.5),) * 2, certainty=0.5)
        if list(plan.merges[0]) == CERTAIN_LINES:
            return replace(plan, merges=plan.merges[:1], weights=(0.0,), certainty=1.0)
        return plan

    monkeypatch.setattr(f"{module}.plan_merge", planned)


@pytest.fixture
def oracle(tiny_model_dir: Path) -> OracleService:
    return OracleService(tiny_model_dir, max_position=40_000, num_blocks=4096)


def outcome(oracle: OracleService, edit: EditRequest) -> Outcome:
    return outcome_of(run_edit(oracle, edit))


def codes(result: Outcome) -> list[str]:
    return [finding.code for finding in result.verdict.findings]


@pytest.mark.parametrize("lines", [FIRST, SECOND])
def test_a_sure_model_settles_an_open_place(oracle: OracleService, lines: list[str]) -> None:
    """Rightly or wrongly: it is the model's word that is taken for it."""
    oracle.will_answer(lines)
    oracle.runner.sureness = 0.99
    result = outcome(oracle, UNSURE)
    assert (result.verdict.status, result.source, codes(result)) == ("applied", "model", [])
    assert list(result.lines) == lines
    oracle.runner.sureness = 0.97
    result = outcome(oracle, UNSURE)
    assert result.verdict.status == "needs_review"
    assert codes(result) == ["ambiguous_place", "low_confidence"]
    assert list(result.lines) == lines


def test_a_toss_up_is_for_review(oracle: OracleService) -> None:
    oracle.will_answer(SECOND)
    oracle.runner.sureness = 0.4
    result = outcome(oracle, UNSURE)
    assert (result.verdict.status, result.confidence) == ("needs_review", pytest.approx(0.4))
    finding = result.verdict.findings[-1]
    assert (finding.code, finding.line) == ("low_confidence", 2)
    assert finding.message == (
        "the model chose `b = 1` (keeps line 2 of the original) for line 2 of the result with"
        " 40.0 %, over `print(a, end=None)` (takes line 3 of the update)"
    )


def test_a_merge_with_one_path_is_doubted_where_the_model_disagrees(oracle: OracleService) -> None:
    """The merge alone would be applied; that it is the same text does not make the doubt go."""
    oracle.will_answer(CERTAIN_LINES)
    result = outcome(oracle, CERTAIN)
    assert (result.verdict.status, result.source, codes(result)) == ("applied", "model", [])
    assert (result.confidence, result.decisions) == (1.0, ())
    assert [row.is_decision for row in result.evidence] == [False] * len(result.evidence)
    assert result.evidence, "the model was listened to where the new line is entered"
    oracle.runner.outside_mass = 0.9994
    result = outcome(oracle, CERTAIN)
    assert (result.verdict.status, result.source) == ("needs_review", "model")
    assert codes(result) == ["model_disagrees"]
    assert result.verdict.findings[0].line == 3
    assert (
        "99.9 % to other text than line 3 of the result, `print(base)`"
        in result.verdict.findings[0].message
    )


def test_without_a_constraint_nobody_is_asked(oracle: OracleService) -> None:
    oracle.will_answer(CERTAIN_LINES)
    oracle.runner.outside_mass = 0.9994
    original = CERTAIN.original.decode()
    result = outcome(oracle, make_edit(original, CERTAIN.update, constraint="none"))
    assert (result.verdict.status, codes(result)) == ("applied", [])
    assert (result.confidence, result.decisions, result.evidence) == (1.0, (), ())


def test_an_answer_that_is_cut_off_has_no_other_finding(oracle: OracleService) -> None:
    oracle.will_answer(SECOND)
    oracle.runner.sureness = 0.3
    short = replace(UNSURE, sampling=SamplingOptions(max_tokens=20), has_fallback=False)
    result = outcome(oracle, short)
    assert (result.verdict.status, codes(result)) == ("rejected", ["truncated"])
    assert [decision.line for decision in result.decisions] == [2]


@pytest.mark.parametrize(
    "example", EXAMPLES, ids=lambda example: f"{example.code}-{example.triggers}"
)
def test_example_of_the_docs(oracle: OracleService, example: Example) -> None:
    assert example.told is not None
    what, value = example.told
    setattr(oracle.runner, {"sure": "sureness", "outside": "outside_mass"}[what], value)
    oracle.will_answer(example.result)
    original, update = ("\n".join([*lines, ""]) for lines in (example.original, example.update))
    result = outcome(oracle, make_edit(original, update, constraint="merge"))
    assert list(result.lines) == example.result
    assert (example.code in codes(result)) == example.triggers, result.verdict


def test_every_code_of_the_model_has_an_example_of_both_kinds() -> None:
    used = set(
        re.findall(r'code="(\w+)"', (ROOT / "apply_service/apply/confidence.py").read_text())
    )
    assert used == {example.code for example in EXAMPLES if example.triggers}
    assert used == {example.code for example in EXAMPLES if not example.triggers}
