"""Edits that agents wrote for files of their own: how many are merged as meant without a model.

The scores were fitted to all of them but `unseen_agent_edits`.

Evenly spread ones of each file are tried, of all styles; with `pytest -m slow` all are.
"""

from __future__ import annotations

from collections import Counter

import pytest
from case_files import case_file
from edit_ends import end_of

from apply_service.evaluate.cases.case_file import read_cases


@pytest.mark.parametrize(
    ("name", "step", "num_right", "num_silent"),
    [
        ("agent_edits", 3, 68, 0),
        ("fitting_agent_edits", 11, 149, 2),
        ("unseen_agent_edits", 2, 47, 1),
        # An instruction in a comment stays in the file ("# Add the permission for pushing here").
        ("further_agent_edits", 3, 31, 1),
        ("later_agent_edits", 4, 114, 2),
        pytest.param("agent_edits", 1, 195, 3, marks=pytest.mark.slow),
        pytest.param("fitting_agent_edits", 1, 1600, 40, marks=pytest.mark.slow),
        pytest.param("unseen_agent_edits", 1, 95, 3, marks=pytest.mark.slow),
        pytest.param("further_agent_edits", 1, 97, 2, marks=pytest.mark.slow),
        pytest.param("later_agent_edits", 1, 430, 14, marks=pytest.mark.slow),
    ],
)
def test_most_are_merged_as_meant(name: str, step: int, num_right: int, num_silent: int) -> None:
    cases = list(read_cases(case_file(name)))[::step]
    ends = Counter(end_of(case) for case in cases)
    assert sum(count for (_, is_right), count in ends.items() if is_right) >= num_right
    assert ends["applied", False] <= num_silent
