"""Edits of which a likely place breaks the syntax while another one keeps it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from case_files import read_records
from pipeline_session import make_edit, make_plan

from apply_service.apply.conclusion import try_conclude_alone
from apply_service.apply.planning.edit_plan import EditPlan
from apply_service.edit.place import syntax_check
from apply_service.edit.place.merge import MergePlan
from apply_service.edit.place.placement import MAX_WEIGHT_GAP
from apply_service.edit.place.splice import splice
from apply_service.edit.syntax.syntax import parse

CASES = read_records("unsound_places")
# Where the place that fits best by all else breaks the syntax.
BEST_BREAKS = {
    *("tsx-open-tag", "jsx-open-tag", "tsx-dialog", "lua-else", "lua-elseif-shorter", "rust-else"),
    *("java-else", "php-else", "typescript-else", "cpp-else", "csharp-else"),
}

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


def merge_of(plan: EditPlan) -> MergePlan:
    assert plan.merge is not None
    return plan.merge


def breaks(plan: EditPlan) -> bool:
    """Whether the best merge has syntax errors, which the original has not."""
    best = merge_of(plan).best
    assert best is not None
    assert plan.tree is not None
    assert not plan.tree.error_lines
    tree = parse(splice(plan.original_lines, best), plan.tree.language)
    assert tree is not None
    return bool(tree.error_lines)


def num_choices(plan: EditPlan) -> int:
    """How many placements a model could choose from, over all segments."""
    best = merge_of(plan).best
    assert best is not None
    return sum(
        other.weight >= one.weight - MAX_WEIGHT_GAP
        for one in best.placements
        for other in merge_of(plan).candidates[one.segment]
        if not one.is_certain
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_place_that_keeps_the_syntax_is_taken(
    case: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(case)
    result = try_conclude_alone(plan)
    assert result is not None
    assert result.merged == case["expected"]
    assert result.verdict.status == ("needs_review" if case["needs_model"] else "applied")
    monkeypatch.setattr(syntax_check, "MAX_PARSED", 0)
    unseen = plan_of(case)
    assert breaks(unseen) is (case["id"] in BEST_BREAKS)
    assert num_choices(unseen) > num_choices(plan)


@pytest.mark.parametrize("case", SLIPS)
def test_an_update_that_lacks_a_bracket_stays_in_doubt(
    case: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(case)
    result = try_conclude_alone(plan)
    assert result is not None
    assert result.verdict.status == "needs_review"
    monkeypatch.setattr(syntax_check, "MAX_PARSED", 0)
    assert num_choices(plan_of(case)) == num_choices(plan)
    monkeypatch.undo()
    monkeypatch.setattr(syntax_check.SyntaxCheck, "keeps_blocks", lambda *_: True)
    assert num_choices(plan_of(case)) < num_choices(plan)


def test_the_cases_are_of_many_languages() -> None:
    assert len(BEST_BREAKS) >= 10
    assert len({Path(case["path"]).suffix for case in CASES}) >= 10
