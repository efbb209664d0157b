"""The k best merges as layers of placements, which the verdict and `lookup` read.

Where all merges agree a layer has one placement. All that they differ in is one layer, with a
placement for each merge: any other combination would be a merge that nobody scored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from apply_service.edit.place.placement import Placement
from apply_service.edit.text.alignment import Hunk, bounded_hunks


def layers_of(
    original_lines: Sequence[str], merges: Sequence[Sequence[str]], weights: Sequence[float]
) -> tuple[tuple[Placement, ...], ...]:
    """The layers in the order of the file; their paths are the `merges`, with their `weights`.

    Equal merges are one, with the weight of the first.
    """
    weight_of: dict[tuple[str, ...], float] = {}
    for merge, weight in zip(merges, weights, strict=True):
        weight_of.setdefault(tuple(merge), weight)
    hunks = [bounded_hunks(original_lines, merge) for merge in weight_of]
    layers: list[tuple[Placement, ...]] = []
    for start, end in _joined(_spans(hunks), list(weight_of), hunks):
        texts: dict[tuple[str, ...], float] = {}
        for (merge, weight), own in zip(weight_of.items(), hunks, strict=True):
            texts.setdefault(_text_of(start, end, merge, own), weight)
        is_open = len(texts) > 1
        layers.append(
            tuple(
                Placement(
                    segment=len(layers),
                    start=start,
                    end=end,
                    lines=text,
                    weight=weight if is_open else 0.0,
                    reason="context",
                    is_certain=not is_open,
                )
                for text, weight in texts.items()
            )
        )
    return tuple(layers)


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
