"""Merges that keep the syntax, and those that keep it by brackets of other blocks."""

from __future__ import annotations

import pytest

from apply_service.edit.place import syntax_check
from apply_service.edit.place.placement import Placement
from apply_service.edit.place.syntax_check import SyntaxCheck
from apply_service.edit.syntax.syntax import parse

ORIGINAL = ["if (a) {", "  one();", "}", "if (b) {", "  two();", "}"]


def placement(start: int, end: int, *lines: str) -> Placement:
    return Placement(segment=0, start=start, end=end, lines=lines, weight=1.0, reason="context")


def check_of(original: list[str]) -> SyntaxCheck:
    return SyntaxCheck(original, parse(original, "javascript"))


def test_a_merge_is_sound_or_broken_or_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    sound, broken = placement(1, 2, "  three();"), placement(1, 2, "  three(;")
    check = check_of(ORIGINAL)
    assert (check.of_placement(sound), check.of_placement(broken)) == ("sound", "broken")
    assert check_of(["if (a {"]).of_placement(sound) == "unknown"
    assert SyntaxCheck(ORIGINAL, None).of_placement(sound) == "unknown"
    size = sum(len(line) + 1 for line in ORIGINAL)
    monkeypatch.setattr(syntax_check, "MAX_PARSED", 2 * size)
    check = check_of(ORIGINAL)
    for _ in range(3):
        assert check.of_placement(sound) == "sound", "a merge is parsed once"
    assert check.of_placement(broken) == "unknown"


@pytest.mark.parametrize(
    "kept",
    [
        pytest.param(placement(1, 2, "  three();"), id="a line"),
        pytest.param(placement(0, 1, "if (", "  a &&", "  c", ") {"), id="a longer head"),
        pytest.param(placement(2, 3, "} else if (c) {", "  three();", "}"), id="one more branch"),
        pytest.param(placement(0, 3, "a && one();"), id="a block becomes a line"),
    ],
)
def test_blocks_are_kept(kept: Placement) -> None:
    assert check_of(ORIGINAL).of_placement(kept) == "sound"
    assert check_of(ORIGINAL).keeps_blocks(kept)


@pytest.mark.parametrize(
    "taken",
    [
        pytest.param(placement(1, 6, "  one();", "  two();", "}"), id="a head and an end are lost"),
        pytest.param(placement(2, 4, "  if (b)"), id="the end of another block"),
        pytest.param(placement(1, 3, "  one();", "  }"), id="another indentation"),
    ],
)
def test_brackets_of_other_blocks_are_noticed(taken: Placement) -> None:
    assert check_of(ORIGINAL).of_placement(taken) == "sound"
    assert not check_of(ORIGINAL).keeps_blocks(taken)


def test_beside_an_update_that_lacks_a_bracket_nothing_is_proved() -> None:
    tree = parse(ORIGINAL, "javascript")
    kept = placement(1, 2, "  three();")
    sent = ["if (a) {", "  while (c) {", "    three();", "}"]
    assert not SyntaxCheck(ORIGINAL, tree, update_lines=sent).keeps_blocks(kept)
    sent[2:2] = ["    four();", "  }"]
    assert SyntaxCheck(ORIGINAL, tree, update_lines=sent[:4]).keeps_blocks(kept)
