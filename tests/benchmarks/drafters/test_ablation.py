"""Moved blocks and renamed identifiers: the same lines, the same names, in another place."""

from __future__ import annotations

import re

from apply_service.evaluate.cases.case_file import Case
from benchmarks.drafters.ablation import move_block, rename_identifier

FUNCTIONS = [
    f"def function_{n}(value):\n    total = value + {n}\n    return total\n\n" for n in range(5)
]
EXPECTED = "import os\n\n" + "".join(FUNCTIONS)


def case_of(expected: str, number: int = 0) -> Case:
    return Case(id=f"case-{number}", path="a.py", original=expected, update="u", expected=expected)


def test_one_block_is_moved_and_nothing_else_changed() -> None:
    results = set()
    for number in range(30):
        case = case_of(EXPECTED, number)
        moved = move_block(case)
        assert moved is not None
        assert moved == move_block(case)
        assert (moved.original, moved.update) == (case.original, case.update)
        assert moved.expected != case.expected
        assert sorted(moved.expected.split("\n")) == sorted(case.expected.split("\n"))
        for function in FUNCTIONS:
            assert function.rstrip() in moved.expected
        results.add(moved.expected)
    assert len(results) > 5


def test_a_file_without_blocks_cannot_be_moved() -> None:
    assert move_block(case_of("a = 1\nb = 2\n")) is None


def test_a_name_is_changed_wherever_it_stands() -> None:
    case = case_of(EXPECTED)
    renamed = rename_identifier(case)
    assert renamed is not None
    [name] = set(re.findall(r"(\w+)_renewed", renamed.expected))
    assert name in {"value", "total"}
    assert not re.search(rf"\b{name}\b", renamed.expected)
    assert renamed.expected.replace("_renewed", "") == case.expected
    assert rename_identifier(case_of("abc = 1\n")) is None
