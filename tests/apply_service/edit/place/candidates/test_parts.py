"""However long an update is, the candidates of all its segments are bounded."""

from __future__ import annotations

import pytest

from apply_service.edit.place.candidates.original_facts import OriginalFacts
from apply_service.edit.place.candidates.parts import MAX_CANDIDATES, MIN_CANDIDATES, parts_of
from apply_service.edit.read.snippet import read_snippet

NUM_LINES = 120


@pytest.mark.parametrize("num_segments", [1, 60])
def test_candidates_are_bounded_and_each_segment_has_some(num_segments: int) -> None:
    lines = [f"value_{number} = read({number % 7})" for number in range(NUM_LINES)]
    step = NUM_LINES // num_segments
    update = ["# ..."]
    for start in range(0, NUM_LINES, step):
        changed = [line.replace("read", "load") for line in lines[start : start + step]]
        update += [*changed, "# ..."]
    parts = parts_of(OriginalFacts(lines, "python"), read_snippet(update, lines))
    assert len(parts) == num_segments
    assert all(part.candidates for part in parts)
    limit = max(MAX_CANDIDATES // num_segments, MIN_CANDIDATES)
    assert max(len(part.candidates) for part in parts) <= limit
