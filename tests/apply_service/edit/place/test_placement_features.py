"""What is counted for and against a placement, on small edits."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from apply_service.edit.place.placement import Placement
from apply_service.edit.place.placement_change import change_of
from apply_service.edit.place.placement_features import (
    FEATURES,
    WEIGHED_FEATURES,
    PlacementFeatures,
)
from apply_service.edit.place.placement_ranking import FEATURE_WEIGHTS, weight_of
from apply_service.edit.syntax.definitions import SymbolTable, find_definitions
from apply_service.edit.syntax.symbol import Symbol
from apply_service.edit.text.bindings import Bindings
from apply_service.edit.text.brackets import BalanceIndex
from apply_service.edit.text.line_index import LineIndex
from apply_service.edit.text.word_weights import WordWeights

ORIGINAL = [
    "import os",
    "import sys",
    "",
    "limit = 10",
    "def first(path):",
    "    return os.path.basename(path)",
    "",
    "def second(count):",
    "    return sys.argv[count]",
]

# Of another segment of the same update.
OTHER_LINES = ["from limits import limit"]


def features(
    start: int,
    end: int,
    lines: list[str],
    original: Sequence[str] = ORIGINAL,
    symbols: Sequence[Symbol] | None = None,
    defined: Sequence[tuple[str, str]] = (),
) -> dict[str, float]:
    index = LineIndex(original)
    if symbols is None:
        symbols = find_definitions(original)
    known = PlacementFeatures(
        lines,
        index,
        table=SymbolTable(symbols, index),
        balances=BalanceIndex(original),
        bindings=Bindings(original),
        weights=WordWeights(index.stripped),
        other_lines=OTHER_LINES,
        is_first=False,
        is_last=False,
        defined=defined,
    )
    placement = Placement(
        segment=0, start=start, end=end, lines=tuple(lines), weight=7.0, reason="context"
    )
    found = (*known.weighed(placement), *known.further(placement))
    return dict(zip(FEATURES, found, strict=True))


def told(start: int, end: int, lines: list[str]) -> dict[str, float]:
    """The features that are not zero, rounded, but for those of the words that go."""
    found = features(start, end, lines)
    assert found.pop("evidence") == 0.7
    del found["lost_share"], found["lost_words"]
    return {name: round(value, 2) for name, value in found.items() if value}


def test_an_insertion_between_two_lines_has_nothing_against_it() -> None:
    assert told(3, 5, ["limit = 10", "", "x = y", "def first(path):"]) == {}


def test_a_segment_without_a_change_is_idle() -> None:
    assert told(3, 5, ORIGINAL[3:5]) == {"is_idle": 1.0}


@pytest.mark.parametrize(
    ("span", "lines", "names"),
    [
        (
            (3, 5),
            ["limit = 11", "def first(path):"],
            {"is_open_before", "num_replaced", "likeness"},
        ),
        ((3, 5), ["limit = 10", "x", "y", "def first(path):"], set()),
        ((4, 9), [*ORIGINAL[4:5], *ORIGINAL[8:9]], {"num_lost_closed"}),
        ((4, 6), [ORIGINAL[4], "    total = 0", ORIGINAL[8]], {"num_moved"}),
        ((4, 5), ["def second(count):", "    pass", ORIGINAL[4]], {"num_doubled_definitions"}),
        ((3, 4), ["limit = (", "limit = 10"], {"is_unbalanced"}),
        ((5, 6), ["return os.path.basename(path).lower()"], {"num_odd_indents"}),
        ((1, 1), ["import re"], {"is_kin_after"}),
        ((1, 2), ["import sys", ""], {"more_blanks"}),
        ((0, 1), ["import re"], {"num_dangling"}),
        ((3, 5), ["def first(path):"], {"num_superseded"}),
        ((0, 1), ["import os", "import sys"], {"num_redeclared"}),
        ((4, 4), ["limit = 11"], {"num_reassigned"}),
    ],
)
def test_what_a_placement_does_is_counted(
    span: tuple[int, int], lines: list[str], names: set[str]
) -> None:
    assert names <= told(*span, lines).keys()


def test_an_import_is_apart_from_the_next_one() -> None:
    original = ["import a", "", "import c", "", "x = 1"]
    assert features(0, 1, ["import a", "import b"], original)["is_apart_from_kin"] == 1.0
    assert features(2, 3, ["import c", "import d"], original)["is_apart_from_kin"] == 0.0


def test_a_name_whose_import_has_a_successor_does_not_dangle() -> None:
    original = ["from a import b, c", "", "print(b)"]
    assert features(0, 1, ["from a import c"], original)["num_dangling"] == 0.0
    assert features(0, 1, ["from d import c"], original)["num_dangling"] == 1.0


def test_a_variant_that_stays_beside_a_new_line_counts_unless_it_is_sent() -> None:
    variant = "    return os.path.basename(path, 1)"
    assert "num_stale" in told(4, 5, [ORIGINAL[4], variant])
    assert "num_stale" not in told(4, 6, [ORIGINAL[4], variant, ORIGINAL[5]])


@pytest.mark.parametrize(
    ("line", "low", "high"),
    [
        ("        return sys.argv[count]", 0.0, 0.0),
        ("    return sys.argv[count + 1]", 0.0, 0.0),
        ("    return sys.argv[-1]", 0.1, 0.5),
        ("    return total", 0.5, 0.9),
        ("    pass", 1.0, 1.0),
    ],
    ids=["deeper", "more", "one goes", "one stays", "all go"],
)
def test_of_the_words_of_lost_lines_those_that_go_have_a_share(
    line: str, low: float, high: float
) -> None:
    found = features(8, 9, [line])
    assert low <= found["lost_share"] <= high
    assert (found["lost_words"] > 0) == (high > 0)


def test_nothing_is_lost_where_lines_are_added() -> None:
    found = features(3, 5, ["limit = 10", "", "x = y", "def first(path):"])
    assert (found["lost_share"], found["lost_words"]) == (0.0, 0.0)


def test_words_that_another_segment_shows_are_not_gone() -> None:
    """`limit` stands in the import of the other segment; `border` nowhere."""
    gone = features(0, 1, ["x"], ["border = 10", "print()"])
    shown = features(0, 1, ["x"], ["limit = 10", "print()"])
    assert gone["lost_share"] == shown["lost_share"] == 1.0
    assert shown["lost_words"] < gone["lost_words"]


def test_a_change_counts_lines_that_stay_in_the_middle() -> None:
    change = change_of(["a", "b", "", "c", "d"], ["a", "x", "c", "y", "d"])
    assert (change.lost, change.added, change.num_kept) == (("b",), ("x", "y"), 1)
    assert (change.num_before, change.num_after, change.has_head, change.has_tail) == (
        1,
        1,
        True,
        True,
    )
    assert change_of(["a", "b"], ["a", "", "b"]).more_blanks == 1


def test_each_feature_has_one_weight_and_doubts_weigh_against() -> None:
    assert (
        list(FEATURE_WEIGHTS) == list(WEIGHED_FEATURES) == list(FEATURES[: len(WEIGHED_FEATURES)])
    )
    assert weight_of([0.0] * len(WEIGHED_FEATURES)) == 0.0
    doubts = {"is_idle", "num_lost_closed", "num_moved", "num_stale", "is_unbalanced"}
    assert all(FEATURE_WEIGHTS[name] < 0 for name in doubts)


def test_definitions_that_go_are_counted_and_those_that_are_used() -> None:
    found = features(4, 7, ["def third(path):", "    return path", ""])
    assert (found["num_dropped"], found["num_dropped_used"]) == (1, 0)
    used = [*ORIGINAL, "print(first('a'))"]
    found = features(4, 7, ["def third(path):", "    return path", ""], used)
    assert (found["num_dropped"], found["num_dropped_used"]) == (1, 1)
    found = features(4, 7, ["def third(path):", "    return first_of(path)", "first", ""], used)
    assert (found["num_dropped"], found["num_dropped_used"]) == (0, 0)


ROUTES = [
    'router.get("/", list);',
    'router.get("/:id", show);',
    "",
    "// get /mine of id",
]
TITLED = [
    Symbol(name="get /", kind="other", start=0, header=0, end=1),
    Symbol(name="get /:id", kind="other", start=1, header=1, end=2),
]


def test_of_routes_and_tests_the_whole_title_counts() -> None:
    mine = 'router.get("/mine/id", mine);'
    found = features(1, 2, [mine], ROUTES, TITLED, [("get /mine", mine)])
    assert (found["num_dropped"], found["num_dropped_used"]) == (1, 0)
    show = 'router.get("/:id", showAll);'
    found = features(1, 2, [show], ROUTES, TITLED, [("get /:id", show)])
    assert (found["num_dropped"], found["num_doubled_definitions"]) == (0, 0)
    found = features(0, 1, [ROUTES[0], show], ROUTES, TITLED, [("get /:id", show)])
    assert found["num_doubled_definitions"] == 1
