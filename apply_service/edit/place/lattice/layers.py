"""The k best merges as layers of placements, which the verdict and the constraint read.

Where all merges agree a layer has one placement. Where they differ it has one for each merge. Two
places belong to one layer, with all between them, unless each may be chosen by itself: another
combination would be a merge that nobody scored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from apply_service.edit.place.placement import Placement
from apply_service.edit.text.alignment import Hunk, bounded_hunks
from apply_service.edit.text.line_index import num_equal_lines


def layers_of(
    original_lines: Sequence[str], merges: Sequence[Sequence[str]]
) -> tuple[tuple[Placement, ...], ...]:
    """The layers in the order of the file; number n of each with several belongs to merge n.

    A placement takes only lines that its merge changes or that stand between such lines.
    """
    hunks = [bounded_hunks(original_lines, merge) for merge in merges]
    layers: list[tuple[Placement, ...]] = []
    for start, end in _joined(_spans(hunks), merges, hunks):
        texts = [_text_of(start, end, merge, own) for merge, own in zip(merges, hunks, strict=True)]
        if len(set(texts)) == 1:
            del texts[1:]
        layers.append(
            tuple(_placement(original_lines, start, end, text, layer=len(layers)) for text in texts)
        )
    return tuple(layers)


def _placement(
    original_lines: Sequence[str],
    start: int,
    end: int,
    text: tuple[str, ...],
    *,
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
    """The spans, with those that depend on each other, and all between them, as one."""
    texts = {
        span: [_text_of(*span, *one) for one in zip(merges, hunks, strict=True)] for span in spans
    }
    different = [span for span in spans if len(set(texts[span])) > 1]
    ways = list(zip(*map(texts.__getitem__, different), strict=True))
    joined: list[tuple[int, int]] = []
    for number, span in enumerate(different):
        if number and not _is_free(ways, number):
            joined[-1] = joined[-1][0], span[1]
        else:
            joined.append(span)
    return sorted([*joined, *(span for span in spans if not _is_inside(span, joined))])


def _is_free(ways: Sequence[tuple[tuple[str, ...], ...]], number: int) -> bool:
    """Whether what each way has before a place, and from there on, goes with the first way too."""
    known = set(ways)
    first = ways[0]
    return all(
        {way[:number] + first[number:], first[:number] + way[number:]} <= known for way in ways
    )


def _is_inside(span: tuple[int, int], others: Iterable[tuple[int, int]]) -> bool:
    return any(start <= span[0] and span[1] <= end for start, end in others)


def _text_of(start: int, end: int, merge: Sequence[str], hunks: Sequence[Hunk]) -> tuple[str, ...]:
    """What a merge has in the place of lines [start, end), which no hunk crosses."""
    before = sum(map(_growth, (hunk for hunk in hunks if hunk.old_end < start)))
    until = sum(map(_growth, (hunk for hunk in hunks if hunk.old_end <= end)))
    return tuple(merge[start + before : end + until])


def _growth(hunk: Hunk) -> int:
    return hunk.new_end - hunk.new_start - (hunk.old_end - hunk.old_start)
