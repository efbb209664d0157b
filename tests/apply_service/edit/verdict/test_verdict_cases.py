"""The verdict on edits as large models write them, right ones and those that nobody can place."""

from __future__ import annotations

from collections import Counter

from case_files import case_file

from apply_service.apply.conclusion import try_conclude_alone
from apply_service.edit.text.text_file import TextFile
from apply_service.edit.verdict.verdict import judge
from apply_service.evaluate.cases.case_file import Case, read_cases
from apply_service.evaluate.cases.planned_case import plan_case

CASES = list(read_cases(case_file("agent_written")))
REFUSED = [case for case in CASES if case.must_refuse]


def status_alone(case: Case) -> str:
    """What the service says of an edit without asking a model."""
    plan = plan_case(case).plan
    outcome = None if plan is None else try_conclude_alone(plan)
    return "not applied" if outcome is None else outcome.verdict.status


def test_hardly_any_unclear_update_is_applied() -> None:
    applied = [case.id for case in REFUSED if status_alone(case) == "applied"]
    assert len(applied) <= 0.1 * len(REFUSED), applied


def test_right_results_are_never_rejected() -> None:
    statuses: Counter[str] = Counter()
    for case in CASES:
        plan = plan_case(case).plan
        if not case.must_refuse and plan is not None:
            expected = list(TextFile.from_text(case.expected).lines)
            verdict = judge(plan.original_lines, plan.update_lines, expected, plan=plan.merge)
            statuses[verdict.status] += 1
    assert statuses["rejected"] == 0, statuses
    assert statuses.total() > 0.9 * (len(CASES) - len(REFUSED))
