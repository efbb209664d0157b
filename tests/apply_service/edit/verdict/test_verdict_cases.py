"""The verdict on edits as large models write them, right ones and those that nobody can place."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest
from case_files import case_file
from oracles.edits.verdict_rates import FLAGGED, JudgedCase

from apply_service.edit.place.merge import splice
from apply_service.edit.text.text_file import TextFile
from apply_service.evaluate.cases.case_file import Case, read_cases

CASES = list(read_cases(case_file("agent_written")))
REFUSED = [case for case in CASES if case.must_refuse]
# Merges of an update that cannot be told apart, beginning with the likeliest.
MAX_MERGES = 4


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_no_merge_of_an_unclear_update_is_applied(case: Case) -> None:
    judged = JudgedCase(case.original, case.update, case.path)
    merges = [] if judged.plan is None else islice(judged.plan.paths(MAX_MERGES), MAX_MERGES)
    for path in merges:
        assert judged.judge(splice(judged.original, path)).status in FLAGGED
    assert judged.judge(judged.original).status in FLAGGED


def test_right_results_are_applied_mostly_and_never_rejected() -> None:
    statuses: Counter[str] = Counter()
    for case in CASES:
        if not case.must_refuse:
            judged = JudgedCase(case.original, case.update, case.path)
            verdict = judged.judge(list(TextFile.from_text(case.expected).lines))
            statuses[verdict.status] += 1
    assert statuses["rejected"] == 0, statuses
    assert statuses["applied"] >= 0.85 * statuses.total(), statuses
