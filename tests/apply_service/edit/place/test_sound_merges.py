"""Of two placements the one that keeps the syntax is the better one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from apply_service.edit.place.placement import MAX_WEIGHT_GAP, Placement
from apply_service.edit.place.sound_merges import SYNTAX_COST, SoundMerges
from apply_service.edit.place.syntax_check import MAX_PARSED, SyntaxCheck
from apply_service.edit.syntax.syntax import parse

ORIGINAL = ["function a() {", "  one();", "}", "function b() {", "  two();", "}"]


def placement(start: int, end: int, weight: float, *lines: str) -> Placement:
    return Placement(segment=0, start=start, end=end, lines=lines, weight=weight, reason="context")


def settled(original: list[str], *placements: Placement) -> list[Placement]:
    tree = parse(original, "javascript")
    assert tree is not None
    merges = SoundMerges(SyntaxCheck(original, tree), tree.symbols, order=[0], removed=[])
    return merges.settle([list(placements)])[0]


BREAKING = placement(2, 3, 3.0, "  three(;", "}")
KEEPING = placement(2, 3, 1.0, "  three();", "}")


def test_a_placement_that_fits_much_better_and_breaks_the_syntax_steps_back() -> None:
    far = replace(BREAKING, weight=4.0)
    best, other = settled(ORIGINAL, far, KEEPING)
    assert best == KEEPING
    assert other.weight == far.weight - SYNTAX_COST


@pytest.mark.parametrize("weight", [3.0, 0.5, -6.5])
def test_a_rival_that_breaks_the_syntax_is_left_out(weight: float) -> None:
    assert settled(ORIGINAL, KEEPING, replace(BREAKING, weight=weight)) == [KEEPING]


def test_a_rival_that_keeps_the_syntax_stays() -> None:
    other = placement(5, 6, 0.5, "  three();", "}")
    assert settled(ORIGINAL, KEEPING, other, BREAKING) == [KEEPING, other]


def test_a_rival_beyond_reach_stays() -> None:
    far = replace(BREAKING, weight=KEEPING.weight - MAX_WEIGHT_GAP - 0.1)
    assert settled(ORIGINAL, KEEPING, far) == [KEEPING, far]


@pytest.mark.parametrize(
    "doubtful",
    [
        pytest.param(replace(KEEPING, reason="order"), id="a guess"),
        pytest.param(placement(2, 6, 1.0, "  three();", "}"), id="b() goes unnamed"),
    ],
)
def test_a_doubt_stays_beside_a_doubtful_placement(doubtful: Placement) -> None:
    rival = replace(BREAKING, weight=0.5)
    assert settled(ORIGINAL, doubtful, rival) == [doubtful, rival]


def test_what_keeps_the_syntax_together_with_another_part_stays() -> None:
    original = ["a(1);", "b(2);", "c(3);"]
    opening = [placement(0, 1, 3.0, "a(1);", "if (a) {"), placement(1, 2, 2.5, "b(2);", "if (a) {")]
    closing = [
        replace(placement(1, 2, 3.0, "b(2);", "}"), segment=1),
        replace(placement(2, 3, 2.5, "}", "c(3);"), segment=1),
    ]
    layers = [opening, closing]
    tree = parse(original, "javascript")
    assert tree is not None
    check = SyntaxCheck(original, tree)
    assert SoundMerges(check, tree.symbols, order=[0, 1], removed=[]).settle(layers) == layers


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
