"""Edits of which a likely place breaks the syntax while another one keeps it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from case_files import read_records
from pipeline_session import make_edit, make_plan

from apply_service.apply.conclusion import try_conclude_alone
from apply_service.apply.planning.edit_plan import EditPlan
from apply_service.edit.syntax.languages import language_of
from apply_service.edit.syntax.syntax import parse

CASES = read_records("unsound_places")
NUM_RIGHT = 10

# Updates that lack a bracket: places that keep the syntax do it by a bracket of another block.
CHECK = (
    "class Stay\n{\n    public static void Check(int nights)\n    {\n        if (nights < 1)\n"
    '        {\n            throw new ArgumentException("Depart after the arrival.");\n        }\n'
    "        if (nights > MaxNights)\n        {\n"
    '            throw new ArgumentException("A stay may not exceed the limit.");\n        }\n'
    "    }\n}\n"
)
MEAN = (
    "double mean(const History& history) {\n    double sum = 0.0;\n"
    "    for (const auto& sample : history) {\n        sum += sample.value;\n    }\n"
    "    return sum / history.size();\n}\n\n"
    "double last(const History& history) {\n    return history.back().value;\n}\n"
)
SLIPS = [
    pytest.param(
        {
            "path": "Stay.cs",
            "original": CHECK,
            "update": "        // ... existing code ...\n        if (nights < 1)\n        {\n"
            '            throw new ArgumentException("Depart after the arrival.");\n'
            "        if (nights > MaxNights)\n        {\n"
            '            throw new ArgumentException($"At most {MaxNights} nights.");\n'
            "        }\n        // ... existing code ...\n",
        },
        id="C#",
    ),
    pytest.param(
        {
            "path": "mean.cpp",
            "original": MEAN,
            "update": "double mean(const History& history) {\n"
            "    if (history.empty()) return 0.0;\n    double sum = 0.0;\n"
            "    for (const auto& sample : history) {\n        sum += sample.value;\n\n"
            "    return sum / history.size();\n}\n\n// ... existing code ...\n",
        },
        id="C++",
    ),
]


def plan_of(case: dict[str, Any]) -> EditPlan:
    edit = make_edit(
        case["original"], case["update"], path=case["path"], language=None, use_model="never"
    )
    return make_plan(edit)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_another_place_is_never_taken_without_a_word(case: dict[str, Any]) -> None:
    plan = plan_of(case)
    result = try_conclude_alone(plan)
    assert result is not None
    assert plan.merge is not None
    assert tuple(case["expected"].splitlines()) in plan.merge.merges
    assert result.verdict.status != "applied" or result.merged == case["expected"]


def test_most_go_where_the_syntax_stays() -> None:
    results = [try_conclude_alone(plan_of(case)) for case in CASES]
    right = [
        result is not None and result.merged == case["expected"]
        for result, case in zip(results, CASES, strict=True)
    ]
    assert sum(right) >= NUM_RIGHT


@pytest.mark.parametrize("case", SLIPS)
def test_an_update_that_lacks_a_bracket_keeps_the_old_one_or_stays_in_doubt(
    case: dict[str, Any],
) -> None:
    result = try_conclude_alone(plan_of(case))
    assert result is not None
    if result.verdict.status == "applied":
        tree = parse(result.merged.splitlines(), language_of(case["path"], None, []))
        assert tree is not None
        assert not tree.error_lines
        assert case["original"].splitlines()[-1] in result.merged


def test_the_cases_are_of_many_languages() -> None:
    assert len({Path(case["path"]).suffix for case in CASES}) >= 10
