"""The fault corpus does what its kinds say, the same way every time."""

from __future__ import annotations

import pytest
from case_files import case_file
from oracles.damage.corruptions import corruptions, random_corruption
from oracles.damage.damages import DAMAGES

from apply_service.edit.text.text_file import split_lines
from apply_service.evaluate.cases.case_file import Case, read_cases

CASES = list(read_cases(case_file("short_edits")))


def test_all_kinds_are_found_and_none_is_the_truth() -> None:
    kinds: set[str] = set()
    for case in CASES:
        expected = split_lines(case.expected)[0]
        for seed in range(5):
            for corruption in corruptions(case, seed=seed):
                assert list(corruption.lines) != expected, corruption.kind
                kinds.add(corruption.kind)
    rare = {"drop_function", "lose_last_blank_lines", "drop_import"}
    assert {damage.__name__ for damage in DAMAGES} - kinds <= rare


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_seed_gives_the_same_corruptions(case: Case) -> None:
    assert list(corruptions(case, seed=3)) == list(corruptions(case, seed=3))
    assert random_corruption(case, seed=3) == random_corruption(case, seed=3)
    assert list(corruptions(case, seed=3)) != list(corruptions(case, seed=4))


def test_damage_on_a_file_of_known_content() -> None:
    case = Case(
        id="known",
        path="a.py",
        original="import os\nimport sys\n\n\ndef first():\n    return os.sep\n\n\nLIMIT = 10\n",
        update="# ...\nLIMIT = 10\nSTEP = 2\n",
        expected="import os\nimport sys\n\n\ndef first():\n    return os.sep\n\n\n"
        "LIMIT = 10\nSTEP = 2\n",
    )
    results = {corruption.kind: corruption.lines for corruption in corruptions(case)}
    expected = split_lines(case.expected)[0]
    assert results["skip_change"] == tuple(expected[:-1])
    assert results["drop_function"] == (*expected[:4], *expected[6:])
    assert results["drop_import"] in (tuple(expected[1:]), (expected[0], *expected[2:]))
    assert results["apply_twice"] == (*expected, "STEP = 2")
    assert "# ..." in results["leave_marker"]
    assert "skip_hunk" not in results
