"""Edits without a model: when it is left out, and what is said of a merge that it did not see."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from oracle_service import OracleService
from pipeline_session import make_edit, make_plan, outcome_of, run_edit

from apply_service.apply.conclusion import is_proven, try_conclude_alone
from apply_service.apply.edit_request import EditRequest, UseModel
from apply_service.apply.outcome import Outcome
from apply_service.config import Settings
from apply_service.edit.place.merge import MIN_CERTAINTY
from apply_service.http.schemas import ApplyBody
from apply_service.http.wire_conversion import edit_of

ORIGINAL = "def shout(path):\n    base = clean(path)\n    return base.upper()\n"
CERTAIN = make_edit(
    ORIGINAL, "# ...\n    base = clean(path)\n    print(base)\n    return base.upper()\n"
)
CERTAIN_MERGED = ORIGINAL.replace("    return", "    print(base)\n    return")
UNSURE = make_edit("a = 1\nb = 1\n\na = 1\nc = 1\n", "# ...\na = 1\nprint(a, end=None)\n# ...\n")
# The place is certain, and the new line has a syntax error that the file did not have.
BROKEN = replace(CERTAIN, update=CERTAIN.update.replace("print(base)", "print = = base"))
IMPOSSIBLE = make_edit(
    ORIGINAL, "<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE\n", checks="off"
)


@pytest.fixture
def oracle(tiny_model_dir: Path) -> OracleService:
    oracle = OracleService(tiny_model_dir)
    oracle.will_answer(["def shout(path):", "    return 1"])
    return oracle


def alone(edit: EditRequest, use_model: UseModel) -> Outcome | None:
    return try_conclude_alone(make_plan(replace(edit, use_model=use_model)))


def codes(result: Outcome) -> list[str]:
    return [finding.code for finding in result.verdict.findings]


@pytest.mark.parametrize("use_model", ["never", "auto"])
def test_a_proven_merge_needs_no_model(oracle: OracleService, use_model: UseModel) -> None:
    oracle.runner.gate.clear()
    (result,) = run_edit(oracle, replace(CERTAIN, use_model=use_model))
    assert isinstance(result, Outcome)
    assert (result.verdict.status, result.source) == ("applied", "merge")
    assert result.merged == CERTAIN_MERGED
    assert (result.stats.target_passes, result.stats.num_prompt_tokens) == (0, 0)
    assert result.confidence is not None
    assert result.confidence >= MIN_CERTAINTY
    assert (result.decisions, result.regions) == ((), ())
    assert alone(CERTAIN, "always") is None


@pytest.mark.parametrize(
    ("edit", "code"),
    [(UNSURE, "ambiguous_place"), (BROKEN, "syntax_error")],
    ids=["open place", "proven place, bad text"],
)
def test_only_what_is_proven_and_sound_is_left_to_the_merge(edit: EditRequest, code: str) -> None:
    assert alone(edit, "auto") is None
    result = alone(edit, "never")
    assert result is not None
    assert (result.verdict.status, result.source) == ("needs_review", "merge")
    assert code in codes(result)


def test_a_model_is_asked_about_what_is_not_proven(oracle: OracleService) -> None:
    merge = make_plan(UNSURE).merge
    assert merge is not None
    oracle.will_answer(merge.merges[1])
    result = outcome_of(run_edit(oracle, replace(UNSURE, use_model="auto")))
    assert (result.source, result.lines) == ("model", merge.merges[1])
    assert result.stats.target_passes > 0


def test_an_update_without_a_place_leaves_the_original() -> None:
    result = alone(IMPOSSIBLE, "never")
    assert result is not None
    assert (result.verdict.status, result.source) == ("rejected", "original")
    assert (result.merged, codes(result)) == (ORIGINAL, ["anchor_not_found"])
    assert alone(IMPOSSIBLE, "auto") is None, "with checks off the model's text is wanted"


def test_a_whole_file_is_decided_whatever_is_asked() -> None:
    whole = make_edit(ORIGINAL, ORIGINAL.replace("upper", "lower"))
    results = [alone(whole, "never"), alone(whole, "auto"), alone(whole, "always")]
    for result in results:
        assert result is not None
        assert (result.source, result.verdict.status) == ("update", "applied")


def test_proven_is_what_is_certain() -> None:
    for edit, expected in ((CERTAIN, True), (BROKEN, True), (UNSURE, False)):
        merge = make_plan(edit).merge
        assert merge is not None
        assert is_proven(merge) is expected


@pytest.mark.parametrize(
    ("settings", "body", "meant"),
    [
        (Settings(), {}, "never"),
        (Settings(), {"use_model": "auto"}, "never"),
        (Settings(), {"use_model": "always"}, "always"),
        (Settings(), {"constraint": "none"}, "auto"),
        (Settings(use_model="always"), {}, "always"),
        (Settings(model="other", profile="chat"), {}, "auto"),
        (Settings(model="other", profile="embedded"), {}, "never"),
    ],
)
def test_auto_asks_no_model_that_is_bound_to_the_merges(
    settings: Settings, body: dict[str, Any], meant: str
) -> None:
    """Its choice among them moves no status; what it writes freely may."""
    edit = edit_of(
        ApplyBody(original=ORIGINAL, update=CERTAIN.update, **body),
        default_deadline_s=None,
        default_use_model=settings.use_model,
        auto_use_model=settings.auto_use_model,
    )
    assert edit.use_model == meant
