"""Tries and their prompts: what is shown to the model, in which order."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from oracle_service import OracleService
from pipeline_session import functions, make_edit, make_plan, tries_of

from apply_service.attempt import attempts_of
from apply_service.region_prompt import build_prompts

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
    assert [attempt.scope for attempt in tries] == ["region", "region", "file"]
    for narrow, wide in pairwise(tries):
        assert wide.regions[0].start <= narrow.regions[0].start
        assert wide.regions[-1].end >= narrow.regions[-1].end
        assert wide.regions != narrow.regions


def test_a_model_of_whole_files_is_shown_the_file_first() -> None:
    tries = list(attempts_of(make_plan(ONE), max_region_tokens=None))
    assert [attempt.scope for attempt in tries] == ["file", "region", "region"]


def test_the_scope_of_the_request_rules() -> None:
    for scope in ("file", "region"):
        tries = list(attempts_of(make_plan(replace(ONE, scope=scope)), max_region_tokens=1500))
        assert {attempt.scope for attempt in tries} == {scope}


def test_a_prompt_holds_its_region_and_predicts_the_merge(oracle: OracleService) -> None:
    plan = make_plan(ONE)
    narrow = tries_of(plan, oracle)[0]
    (prompt,) = build_prompts(plan, narrow, oracle.profile)
    lines = plan.original_lines[prompt.region.start : prompt.region.end]
    place = lines.index("    for step in range(20):")
    predicted = [*lines[:place], "    print(value)", *lines[place:]]
    assert prompt.predicted_token_ids == tuple(prompt.prompt.answer_token_ids(predicted))
    assert len(prompt.prompt.token_ids) < len(LARGE) / 2
