"""Tries and their prompts: what is shown to the model, in which order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from oracle_service import OracleService
from pipeline_session import functions, make_edit, make_plan, tries_of

from apply_service.apply.attempt import MAX_REGIONS, attempts_of
from apply_service.apply.region_prompt import build_prompts
from apply_service.edit.place.merge import MergePlan

LARGE = functions([f"part_{number:02d}" for number in range(43)])
ONE = make_edit(
    LARGE,
    "# ...\ndef part_20(value):\n    total_part_20 = value + 20\n    print(value)\n"
    "    for step in range(20):\n# ...\n",
)


@pytest.fixture
def oracle(tiny_model_dir: Path) -> OracleService:
    return OracleService(tiny_model_dir)


def test_tries_widen_from_the_cell_to_the_file() -> None:
    tries = list(attempts_of(make_plan(ONE), max_region_tokens=1500))
    assert [attempt.scope for attempt in tries] == ["region", "region", "region", "file"]
    sizes = [sum(region.end - region.start for region in attempt.regions) for attempt in tries]
    assert sizes == sorted(sizes)
    place = LARGE.split("\n").index("    for step in range(20):")
    for attempt in tries:
        assert any(region.start <= place <= region.end for region in attempt.regions)


def test_a_model_of_whole_files_is_shown_the_file_first() -> None:
    tries = list(attempts_of(make_plan(ONE), max_region_tokens=None))
    assert [attempt.scope for attempt in tries] == ["file", "region", "region", "region"]


def test_many_places_make_cells_of_a_coarser_grid() -> None:
    changes = [
        f"def part_{number:02d}(value):\n    total_part_{number:02d} = value - {number}"
        for number in range(MAX_REGIONS + 4)
    ]
    edit = make_edit(LARGE, "# ...\n" + "\n# ...\n".join(changes) + "\n# ...\n")
    tries = list(attempts_of(make_plan(edit), max_region_tokens=1500))
    assert len(tries[0].regions) <= MAX_REGIONS
    assert tries[0].scope == "region"


def test_rival_places_are_shown_together_first_and_then_the_best_one_alone() -> None:
    lines = LARGE.split("\n")
    places = [number for number, line in enumerate(lines) if line == "    for step in range(20):"]
    (first,) = places
    second = first + 20
    new = "    print(value)"
    merges = tuple((*lines[:at], new, *lines[at:]) for at in (first, second))
    plan = make_plan(ONE)
    merge = MergePlan(original_lines=lines, merges=merges, weights=(-0.5, -1.0), certainty=0.5)
    contested, best = list(attempts_of(replace(plan, merge=merge), max_region_tokens=1500))[:2]
    (shown,) = contested.regions
    assert shown.start < first
    assert second < shown.end
    (narrow,) = best.regions
    assert narrow.start < first < narrow.end <= second


def test_the_scope_of_the_request_rules() -> None:
    for scope in ("file", "region"):
        tries = list(attempts_of(make_plan(replace(ONE, scope=scope)), max_region_tokens=1500))
        assert {attempt.scope for attempt in tries} == {scope}


def test_a_prompt_holds_its_region_and_predicts_the_merge(oracle: OracleService) -> None:
    plan = make_plan(ONE)
    narrow = tries_of(plan, oracle)[0]
    (prompt,) = build_prompts(plan, oracle.profile, regions=narrow.regions, scope=narrow.scope)
    lines = plan.original_lines[prompt.region.start : prompt.region.end]
    place = lines.index("    for step in range(20):")
    predicted = [*lines[:place], "    print(value)", *lines[place:]]
    assert prompt.predicted_token_ids == tuple(prompt.prompt.answer_token_ids(predicted))
    assert len(prompt.prompt.token_ids) < len(LARGE) / 2
