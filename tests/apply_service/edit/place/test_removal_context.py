"""Lines beside a removal that stay as they are have their place next to it."""

from __future__ import annotations

from apply_service.edit.place.placement import Placement, RemovedSpan
from apply_service.edit.place.removal_context import with_removal_context
from apply_service.edit.read.segment import Removal
from apply_service.edit.text.line_index import LineIndex

LINES = ["a", "}", "", "b", "}", "", "c", "}"]


def placement(segment: int, start: int, *lines: str, weight: float = 0.0) -> Placement:
    return Placement(
        segment=segment,
        start=start,
        end=start + len(lines),
        lines=lines,
        weight=weight,
        reason="context",
    )


def starts(candidates: list[list[Placement]], removed: RemovedSpan) -> list[list[tuple[int, bool]]]:
    settled = with_removal_context(
        candidates, [Removal(removed.name, 2, 1)], [removed], LineIndex(LINES)
    )
    return [[(one.start, one.is_certain) for one in layer] for layer in settled]


def test_context_above_and_below_a_removal_is_certain() -> None:
    above = [placement(0, 4, "}", weight=1.0), placement(0, 1, "}"), placement(0, 7, "}")]
    below = [placement(1, 0, "a", weight=1.0), placement(1, 6, "c")]
    assert starts([above, below], RemovedSpan(3, 6, "b")) == [
        [(1, True), (4, False), (7, False)],
        [(6, True), (0, False)],
    ]


def test_a_changed_line_or_one_further_away_is_not() -> None:
    above = [placement(0, 4, "}", weight=1.0), placement(0, 1, "};")]
    below = [placement(1, 7, "}")]
    assert starts([above, below], RemovedSpan(3, 6, "b")) == [
        [(4, False), (1, False)],
        [(7, False)],
    ]


def test_other_segments_stay_as_they_are() -> None:
    layers = [[placement(0, 1, "}")], [placement(1, 6, "c")], [placement(2, 6, "c")]]
    assert starts(layers, RemovedSpan(3, 6, "b"))[2] == [(6, False)]
