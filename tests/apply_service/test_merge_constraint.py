"""Which placements a model may choose from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from apply_service.bench.cases import read_cases
from apply_service.bench.replay_case import to_tokens
from apply_service.edit import lazy_placements
from apply_service.edit.merge import MergePlan
from apply_service.edit.placement import Placement
from apply_service.merge_constraint import MAX_ALTERNATIVES, MAX_WEIGHT_GAP
from apply_service.model_store import resolve_model
from apply_service.prompts.profile import load_profile

AGENT_WRITTEN = Path(__file__).parents[1] / "cases" / "agent_written.jsonl"


def offers() -> Iterator[tuple[MergePlan, Placement, tuple[Placement, ...]]]:
    """Each segment's plan, best placement and offered placements, over all cases."""
    profile = load_profile("embedded", resolve_model("embedded").path)
    for case in read_cases(AGENT_WRITTEN):
        prepared = to_tokens(case, profile, has_merge=False)
        constraint = prepared.try_constrain()
        plan = prepared.planned.plan
        if constraint is None or plan is None or plan.merge is None:
            continue
        for group in constraint.placements:
            yield plan.merge, group[0], group


def shares_a_line(plan: MergePlan, placement: Placement) -> bool:
    """Whether a line with text stands in the placement and in what it takes the place of."""
    span = plan.original_lines[placement.start : placement.end]
    return bool({text.strip() for text in span} & {text.strip() for text in placement.lines} - {""})


def test_what_drops_lines_without_an_anchor_is_not_offered_beside_what_has_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The trees leave hardly any of these so near; without them there are more.
    for name in ("corrected", "confirmed"):
        monkeypatch.setattr(lazy_placements, name, lambda placements, lines: list(placements))
    num_offered = num_withheld = 0
    for plan, best, offered in offers():
        assert offered[0] == best
        assert len(set(offered)) == len(offered) <= MAX_ALTERNATIVES
        assert all(one.weight >= best.weight - MAX_WEIGHT_GAP for one in offered)
        if best.reason == "similar" or best.is_certain:
            continue
        for rival in plan.candidates[best.segment]:
            is_close = rival.weight >= best.weight - MAX_WEIGHT_GAP
            if rival.reason != "similar" or rival.start == rival.end or not is_close:
                continue
            num_offered += rival in offered
            num_withheld += not shares_a_line(plan, rival)
            assert rival not in offered or shares_a_line(plan, rival)
    assert num_offered > 20
    assert num_withheld > 2
