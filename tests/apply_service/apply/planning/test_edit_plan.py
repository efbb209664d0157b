"""Plans: which edits need no model, and what is said of those that cannot be done."""

from __future__ import annotations

from pipeline_session import make_edit, make_plan

from apply_service.apply.conclusion import conclude_decided, try_conclude_merge

ORIGINAL = "def shout(path):\n    base = clean(path)\n    return base.upper()\n"
IMPOSSIBLE = "<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE\n"


def test_an_impossible_update_is_rejected_without_a_model() -> None:
    plan = make_plan(make_edit(ORIGINAL, IMPOSSIBLE))
    assert plan.is_impossible
    outcome = conclude_decided(plan)
    assert (outcome.verdict.status, outcome.merged, outcome.diff) == ("rejected", ORIGINAL, "")
    assert "anchor_not_found" in {finding.code for finding in outcome.verdict.findings}
    assert make_plan(make_edit(ORIGINAL, IMPOSSIBLE, checks="off")).decision is None


def test_a_whole_file_and_a_new_one_are_their_update() -> None:
    whole = ORIGINAL.replace("upper", "lower")
    for original in (ORIGINAL, ""):
        outcome = conclude_decided(make_plan(make_edit(original, whole)))
        assert (outcome.merged, outcome.source) == (whole, "update")
        assert outcome.verdict.status == "applied"


def test_only_a_place_that_anchors_decide_is_applied_without_a_model() -> None:
    certain = "# ...\n    base = clean(path)\n    print(base)\n    return base.upper()\n"
    outcome = try_conclude_merge(make_plan(make_edit(ORIGINAL, certain)))
    assert outcome is not None
    assert (outcome.verdict.status, outcome.source) == ("applied", "merge")
    twice = "a = 1\nb = 1\n\na = 1\nc = 1\n"
    outcome = try_conclude_merge(make_plan(make_edit(twice, "# ...\na = 1\nprint(a)\n# ...\n")))
    assert outcome is not None
    assert outcome.verdict.status == "needs_review"
