"""Of two placements the one that keeps the syntax is the better one."""

from __future__ import annotations

from dataclasses import replace

from apply_service.edit.placement import Placement
from apply_service.edit.sound_merges import MAX_PARSED, SYNTAX_COST, SoundMerges
from apply_service.edit.syntax import parse

ORIGINAL = ["function a() {", "  one();", "}", "function b() {", "  two();", "}"]


def placement(start: int, end: int, weight: float, *lines: str) -> Placement:
    return Placement(segment=0, start=start, end=end, lines=lines, weight=weight, reason="context")


def settled(original: list[str], *placements: Placement) -> list[Placement]:
    tree = parse(original, "javascript")
    assert tree is not None
    merges = SoundMerges(original, tree, order=[0], removed=[])
    return merges.settle([list(placements)])[0]


BREAKING = placement(2, 3, 3.0, "  three(;", "}")
KEEPING = placement(2, 3, 1.0, "  three();", "}")


def test_a_placement_that_breaks_the_syntax_steps_back() -> None:
    best, other = settled(ORIGINAL, BREAKING, KEEPING)
    assert best == KEEPING
    assert other.weight == BREAKING.weight - SYNTAX_COST


def test_a_sound_best_placement_stays_as_it_is() -> None:
    best = replace(KEEPING, weight=4.0)
    assert settled(ORIGINAL, best, BREAKING) == [best, BREAKING]


def test_nothing_changes_where_every_placement_breaks_the_syntax() -> None:
    worse = placement(2, 3, 1.0, "  three(;", ";", "}")
    assert settled(ORIGINAL, BREAKING, worse) == [BREAKING, worse]


def test_long_merges_are_not_parsed() -> None:
    original = [*ORIGINAL, *["// a comment of a line"] * (MAX_PARSED // 20)]
    assert settled(original, BREAKING, KEEPING) == [BREAKING, KEEPING]


def test_a_placement_that_opens_a_comment_within_one_steps_back() -> None:
    original = ["/** One. */", "const one = 1;", "/** Two. */", "const two = 2;"]
    swallowing = placement(1, 1, 3.0, "/**", " * Three.")
    closed = placement(1, 1, 1.0, "/**", " * Three.", " */")
    assert settled(original, swallowing, closed)[0] == closed
