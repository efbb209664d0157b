"""No text of a request can make a regular expression take more than linear time."""

from __future__ import annotations

import time

import pytest
from oracles.edits.pattern_cost import BOUNDS, UsedPattern, growth, seconds_at, used_patterns

from apply_service.edit.read.marker_scan import MarkerScan
from apply_service.edit.read.original_index import OriginalIndex

PATTERNS = used_patterns()
# Between linear, whose exponent is 1, and quadratic.
MAX_EXPONENT = 1.3
# A hundred times what a slow processor takes for the worst of them.
MAX_SECONDS = 0.5


def _short_name(used: UsedPattern) -> str:
    return used.name.removeprefix("apply_service.edit.")


def test_the_patterns_of_all_rooms_are_found() -> None:
    names = {used.name.split(".")[1] for used in PATTERNS}
    assert {"edit", "http", "apply", "cli", "workspace"} <= names
    assert len(PATTERNS) > 100
    assert set(map(_short_name, PATTERNS)) >= set(BOUNDS)


@pytest.mark.parametrize("used", PATTERNS, ids=_short_name)
def test_cost_grows_no_faster_than_the_text(used: UsedPattern) -> None:
    bound = BOUNDS.get(_short_name(used))
    if bound is None:
        found = growth(used)
        assert found.exponent <= MAX_EXPONENT, found
    else:
        assert seconds_at(used, bound) <= MAX_SECONDS


@pytest.mark.parametrize("head", ["(", "- ", "// ", "// (", "# ... "])
def test_many_markers_of_dots_take_no_longer_than_other_lines(head: str) -> None:
    lines = [head + "." * 140 + f"-x{number}" for number in range(400)]
    scan = MarkerScan(OriginalIndex(["a"]), language="python")
    began = time.process_time()
    assert not any(map(scan.is_marker, lines))
    assert time.process_time() - began <= MAX_SECONDS
