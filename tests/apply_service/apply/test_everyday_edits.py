"""Everyday edits as agents send them, in many languages: hardly any goes wrong without a word."""

from __future__ import annotations

from collections import Counter

from case_files import case_file
from edit_ends import end_of

from apply_service.evaluate.cases.case_file import read_cases

NUM_RIGHT, NUM_SILENT = 82, 0


def test_most_are_merged_as_meant() -> None:
    ends = Counter(map(end_of, read_cases(case_file("everyday_edits"))))
    assert sum(count for (_, is_right), count in ends.items() if is_right) >= NUM_RIGHT
    assert ends["applied", False] <= NUM_SILENT
