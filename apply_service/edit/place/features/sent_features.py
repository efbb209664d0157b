"""Features of a whole merge: whether what was sent stands in it as it was sent."""

from __future__ import annotations

from apply_service.edit.place.features.feature import FeatureSet
from apply_service.edit.place.features.merge_view import MergeView

SENT_FEATURES: FeatureSet[MergeView, float] = FeatureSet()
MAX_PLACES = 12
_add = SENT_FEATURES.add


@_add
def num_strayed(view: MergeView) -> float:
    """Lines that were sent in a block and do not stand in it."""
    result = view.result
    found = 0
    for text, header in view.reading.shape.nested:
        places = result.places.get(text, ())
        if places and not any(header in result.headers_above(line) for line in places[:MAX_PLACES]):
            found += 1
    return found


@_add
def num_parted(view: MergeView) -> float:
    """Lines sent one after the other that do not follow one another."""
    return sum((view.reading.shape.neighbours - view.result.neighbours).values())


@_add
def num_uncommented(view: MergeView) -> float:
    """Comments sent above a line that do not stand above it."""
    pairs = view.result.neighbours
    return sum(pair not in pairs for pair in view.reading.shape.headed)


@_add
def num_left_in_complete(view: MergeView) -> float:
    """Lines that stay in a definition which was sent whole."""
    result = view.result
    found = 0
    for header, sent in view.reading.shape.complete:
        places = result.places.get(header, ())
        if not places:
            continue
        left = []
        for line in places[:MAX_PLACES]:
            body = result.stripped[line : result.block_end(line)]
            left.append(sum(text not in sent for text in body))
        found += min(left)
    return found


@_add
def num_unsent_twice(view: MergeView) -> float:
    """Sent lines that stand there more often than they were sent and than before."""
    sent, before, after = view.reading.shape.counts, view.original.counts, view.result.counts
    return sum(
        max(after[text] - max(num, before[text]), 0) for text, num in sent.items() if len(text) > 3
    )


@_add
def num_also_before(view: MergeView) -> float:
    """Telling new lines of which the file had as many: perhaps they were only to be found."""
    sent, before, after = view.reading.shape.counts, view.original.counts, view.result.counts
    return sum(after[text] > before[text] > 0 for text in sent if len(text) > 6)


@_add
def share_known(view: MergeView) -> float:
    """The part of the sent lines that the file has."""
    lines = [line for line in view.reading.shape.lines if len(line.text) > 6]
    return sum(line.text in view.original.counts for line in lines) / max(len(lines), 1)
