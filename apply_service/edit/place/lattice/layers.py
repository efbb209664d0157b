"""The k best merges as layers of placements, which the verdict and `lookup` read.

Where all merges agree a layer has one placement. All that they differ in is one layer, with a
placement for each merge: any other combination would be a merge that nobody scored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from apply_service.edit.place.placement import Placement
from apply_service.edit.text.alignment import Hunk, bounded_hunks
from apply_service.edit.text.line_index import num_equal_lines


def layers_of(
    original_lines: Sequence[str], merges: Sequence[Sequence[str]], weights: Sequence[float]
) -> tuple[tuple[Placement, ...], ...]:
    """The layers in the order of the file; their paths are the different `merges`.

    A layer has one placement, or one for each merge, in order, with its weight. That one takes only
    lines that its merge changes or that stand between such lines.
    """
    hunks = [bounded_hunks(original_lines, merge) for merge in merges]
    layers: list[tuple[Placement, ...]] = []
    for start, end in _joined(_spans(hunks), merges, hunks):
        texts = [_text_of(start, end, merge, own) for merge, own in zip(merges, hunks, strict=True)]
        is_open = len(set(texts)) > 1
        found = zip(texts, weights, strict=True) if is_open else [(texts[0], 0.0)]
        layers.append(
            tuple(
                _placement(original_lines, start, end, text, weight=weight, layer=len(layers))
                for text, weight in found
            )
        )
    return tuple(layers)


def _placement(
    original_lines: Sequence[str],
    start: int,
    end: int,
    text: tuple[str, ...],
    *,
    weight: float,
    layer: int,
) -> Placement:
    """`text` for lines [start, end), without what both begin and end with."""
    old = original_lines[start:end]
    head = num_equal_lines(old, 0, text, 0, 1)
    most = min(len(old), len(text)) - head
    tail = min(num_equal_lines(old, len(old) - 1, text, len(text) - 1, -1), most)
    return Placement(
        layer=layer,
        start=start + head,
        end=end - tail,
        lines=text[head : len(text) - tail],
        weight=weight,
    )


def _spans(hunks: Iterable[Sequence[Hunk]]) -> list[tuple[int, int]]:
    """The lines of the original that some merge changes; spans that touch are one."""
    spans: list[tuple[int, int]] = []
    for hunk in sorted((one for own in hunks for one in own), key=lambda one: one.old_start):
        if spans and hunk.old_start <= spans[-1][1]:
            spans[-1] = spans[-1][0], max(spans[-1][1], hunk.old_end)
        else:
            spans.append((hunk.old_start, hunk.old_end))
    return spans


def _joined(
    spans: Sequence[tuple[int, int]],
    merges: Sequence[Sequence[str]],
    hunks: Sequence[Sequence[Hunk]],
) -> list[tuple[int, int]]:
    """The spans, with those in which merges differ, and all between them, as one."""
    different = [
        span
        for span in spans
        if len({_text_of(*span, *one) for one in zip(merges, hunks, strict=True)}) > 1
    ]
    if not different:
        return list(spans)
    start, end = different[0][0], different[-1][1]
    before = [span for span in spans if span[1] < start]
    return [*before, (start, end), *(span for span in spans if span[0] > end)]


def _text_of(start: int, end: int, merge: Sequence[str], hunks: Sequence[Hunk]) -> tuple[str, ...]:
    """What a merge has in the place of lines [start, end), which no hunk crosses."""
    before = sum(map(_growth, (hunk for hunk in hunks if hunk.old_end < start)))
    until = sum(map(_growth, (hunk for hunk in hunks if hunk.old_end <= end)))
    return tuple(merge[start + before : end + until])


def _growth(hunk: Hunk) -> int:
    return hunk.new_end - hunk.new_start - (hunk.old_end - hunk.old_start)
