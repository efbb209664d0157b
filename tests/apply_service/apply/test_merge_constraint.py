"""Which placements a model may choose from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from case_files import case_file

from apply_service.apply.merge_constraint import MAX_ALTERNATIVES, try_constrain
from apply_service.edit.place.merge import MergePlan
from apply_service.edit.place.placement import MAX_WEIGHT_GAP, Placement, PlacementReason
from apply_service.edit.regions import Region
from apply_service.evaluate.cases.case_file import read_cases
from apply_service.models.store import resolve_model
from apply_service.prompts.profile import PromptRequest, load_profile
from benchmarks.drafters.replay_case import to_tokens

AGENT_WRITTEN = case_file("agent_written")
ORIGINAL = ["first = 1", "limit = 10", "second = 2", "", "third = 3"]


def offers() -> Iterator[tuple[Placement, tuple[Placement, ...]]]:
    """Each segment's best placement and the offered ones, over all cases."""
    profile = load_profile("embedded", resolve_model("embedded").path)
    for case in read_cases(AGENT_WRITTEN):
        prepared = to_tokens(case, profile, has_merge=False)
        constraint = prepared.try_constrain()
        plan = prepared.planned.plan
        if constraint is None or plan is None or plan.merge is None:
            continue
        best = plan.merge.best
        assert best is not None
        yield from zip(best.placements, constraint.placements, strict=True)


def placed(start: int, end: int, reason: PlacementReason, *lines: str) -> Placement:
    return Placement(
        segment=0, start=start, end=end, lines=lines, weight=-start / 10, reason=reason
    )


def test_the_best_place_comes_first_and_none_that_is_far_behind() -> None:
    num_offered = 0
    for best, offered in offers():
        assert offered[0] == best
        assert len(set(offered)) == len(offered) <= MAX_ALTERNATIVES
        assert all(one.weight >= best.weight - MAX_WEIGHT_GAP for one in offered)
        num_offered += len(offered) > 1
    assert num_offered > 20


@pytest.mark.parametrize(("reason", "num_offered"), [("context", 3), ("similar", 4)])
def test_what_drops_lines_without_an_anchor_is_not_offered_beside_what_has_one(
    reason: PlacementReason, num_offered: int
) -> None:
    best = placed(0, 1, reason, "first = 1", "new = 0")
    anchored = placed(1, 3, "similar", "limit = 10", "new = 0")
    added = placed(3, 3, "similar", "new = 0")
    wild = placed(4, 5, "similar", "new = 0")
    candidates = (best, anchored, added, wild)
    plan = MergePlan(original_lines=ORIGINAL, candidates=(candidates,), order=(0,))
    profile = load_profile("embedded", resolve_model("embedded").path)
    prompt = profile.build(PromptRequest(ORIGINAL, ["# ...", "first = 1", "new = 0"], segments=()))
    constraint = try_constrain(plan, Region(0, len(ORIGINAL)), prompt)
    assert constraint is not None
    assert constraint.placements == (candidates[:num_offered],)
