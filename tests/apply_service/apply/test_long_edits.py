"""Edits whose prompt is longer than the model's context: the merge that needs no model is given."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from case_files import read_records
from oracle_service import OracleService
from pipeline_session import make_edit, outcome_of, run_edit

from apply_service.apply.edit_request import EditRequest
from apply_service.apply.errors import PromptTooLongError

# The context of the embedded model.
CONTEXT = 8192
# A line `@repeat 800 item {n}` stands for 800 lines, numbered.
REPEAT = re.compile(r"@repeat (\d+) (.*\n)")
CASES = read_records("long_edits")
TWICE = "a = 1\nb = 1\n\na = 1\nc = 1\n"
LONG = "\n".join(f"print('line {number}', end='')" for number in range(1200))
UNSURE = f"# ...\na = 1\n{LONG}\n# ...\n"


@pytest.fixture
def oracle(tiny_model_dir: Path) -> OracleService:
    return OracleService(
        tiny_model_dir, max_position=CONTEXT, num_blocks=1024, max_file_bytes=1 << 20
    )


def expanded(text: str) -> str:
    def lines(match: re.Match[str]) -> str:
        return "".join(match[2].replace("{n}", str(number)) for number in range(int(match[1])))

    return REPEAT.sub(lines, text)


def edit_of(case: dict[str, Any], **options: Any) -> EditRequest:
    options.setdefault("use_model", "always")
    return make_edit(
        expanded(case["original"]),
        expanded(case["update"]),
        path=case["path"],
        language=case["language"],
        scope=case.get("scope", "auto"),
        **options,
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_merge_that_needs_no_model_is_given_whatever_its_length(
    oracle: OracleService, case: dict[str, Any]
) -> None:
    result = outcome_of(run_edit(oracle, edit_of(case)))
    assert (result.verdict.status, result.verdict.findings) == ("applied", ())
    assert result.merged == expanded(case["expected"])
    assert (result.source, result.stats.target_passes) == ("merge", 0)


def test_the_cases_are_of_many_languages_and_too_long(oracle: OracleService) -> None:
    assert len(CASES) >= 10
    assert len({case["language"] for case in CASES}) >= 5
    for case in CASES:
        with pytest.raises(PromptTooLongError, match=f"the limit is {CONTEXT}; leave "):
            run_edit(oracle, edit_of(case, has_fallback=False))


@pytest.mark.parametrize("use_model", ["auto", "always"])
def test_a_doubtful_merge_is_for_review_and_says_why_no_model_was_asked(
    oracle: OracleService, use_model: str
) -> None:
    result = outcome_of(run_edit(oracle, make_edit(TWICE, UNSURE, use_model=use_model)))
    assert (result.verdict.status, result.source) == ("needs_review", "merge")
    doubt, finding = result.verdict.findings
    assert (doubt.code, finding.code) == ("ambiguous_place", "place_unconfirmed")
    assert f"the limit is {CONTEXT}; send one change at a time" in finding.message
