"""Proposes the lines [start, end) of the original that a segment may take the place of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from apply_service.edit.place.candidates.candidate import Origin
from apply_service.edit.place.candidates.filled_lines import FilledLines
from apply_service.edit.place.candidates.row_matcher import LITTLE_WEIGHT, RowMatcher
from apply_service.edit.place.candidates.rows import Row
from apply_service.edit.text.brackets import BLOCK_OPENERS
from apply_service.edit.text.words import WORD

# Rows from either border of a segment that are looked for, until so many stand in one place only.
MAX_BORDER_ROWS = 25
NUM_TELLING_ROWS = 3
TELLING_WEIGHT = 0.6
MAX_ALIKE_LINES = 14
ALIKE_RATIO = 0.6
NEARLY_EQUAL_RATIO = 0.75
RUN_RATIO = 0.8
# Rows of one border that say little are looked for near the row that says most.
MAX_LITTLE_LINES = 40
MAX_REACH = 9
MAX_STARTS = 110
MAX_ENDS_PER_START = 10
MAX_ALIGNED = 80
MAX_RUNS = 60
MAX_INSERTED = 16
MAX_BLOCKS = 24
MAX_FRAMED = 48
MAX_FRAME_LINES = 60
# An end that is reached from a later row, and lines that are lost, make a span less likely.
RANK_COST = 0.05
LOST_COST = 0.16
# Of the evidence that all rows together could give: below, the segment may be new as a whole.
LITTLE_FOUND = 0.3
MUCH_FOUND = 0.7
MAX_INSERTIONS = {"little": 100, "some": 45, "much": 14}
# Ends of blocks besides: new members go there.
MAX_BLOCK_ENDS = 40
NEAR_LINES = 3


@dataclass(slots=True)
class SpanSet:
    """Spans by the way that found them."""

    origins: dict[tuple[int, int], set[Origin]] = field(default_factory=dict)

    def add(self, span: tuple[int, int], origin: Origin) -> None:
        """Add a span, or one more way to it."""
        self.origins.setdefault(span, set()).add(origin)


class SpanSearch:
    """The spans of one segment in one original."""

    def __init__(self, original: FilledLines, rows: Sequence[Row], matcher: RowMatcher) -> None:
        self._original = original
        self._rows = rows
        self._matcher = matcher
        self._starts: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        self._found_share = 0.0

    def find(self, *, opens_file: bool, closes_file: bool) -> SpanSet:
        """All spans; a segment without a marker before it may begin the file, likewise after."""
        spans = SpanSet()
        self._put_borders()
        if opens_file:
            self._put(self._starts, 0, 0)
        if closes_file:
            self._put(self._ends, len(self._original), 0)
        blocks = list(self._blocks())
        runs = list(self._runs())
        aligned = self._aligned()
        for span in aligned:
            spans.add(span, "alignment")
        for span in sorted(runs, key=self._run_key)[:MAX_RUNS]:
            spans.add(span, "run")
        for span in self._inserted():
            spans.add(span, "run")
        for span in blocks[:MAX_BLOCKS]:
            spans.add(span, "block")
        for span in self._framed():
            spans.add(span, "frame")
        for place in self._insertions(aligned):
            spans.add((place, place), "insertion")
        return spans

    def _put(self, borders: dict[int, int], place: int, rank: int) -> None:
        if 0 <= place <= len(self._original) and borders.get(place, rank + 1) > rank:
            borders[place] = rank

    def _put_borders(self) -> None:
        """Lines like the first rows may be where the segment begins, or what stands behind it."""
        num_rows = len(self._rows)
        for borders, step in ((self._starts, -1), (self._ends, 1)):
            num_telling = 0
            for rank in range(min(num_rows, MAX_BORDER_ROWS)):
                row = rank if step < 0 else num_rows - 1 - rank
                least = NEARLY_EQUAL_RATIO if rank else ALIKE_RATIO
                for line in self._lines_of(row, least):
                    place = line if step < 0 else line + 1
                    self._put(borders, place, rank)
                    for reach in range(1, min(rank + 3, MAX_REACH) if rank else 2):
                        self._put(borders, place + step * reach, rank + 1)
                is_equal = self._matcher.is_equal[row]
                if self._matcher.row_weights[row] > TELLING_WEIGHT and is_equal.sum() == 1:
                    num_telling += 1
                    self._put(borders, int(is_equal.argmax()) + (step > 0), 0)
                if num_telling == NUM_TELLING_ROWS:
                    break

    def _lines_of(self, row: int, least: float) -> list[int]:
        """Lines like a row; where it says little, equal lines near the row that says most."""
        matcher = self._matcher
        if matcher.row_weights[row] >= LITTLE_WEIGHT:
            return matcher.alike_lines(row, least, MAX_ALIKE_LINES)
        known = [one for one in range(len(self._rows)) if matcher.is_equal[one].any()]
        if not known:
            return []
        best = max(known, key=lambda one: matcher.row_weights[one] / matcher.is_equal[one].sum())
        near = np.nonzero(matcher.is_equal[best])[0][:6]
        indent = self._rows[row].indent
        lines = [int(line) for line in np.nonzero(matcher.is_equal[row])[0]]

        def distance(line: int) -> tuple[bool, int]:
            return self._original.indents[line] != indent, int(np.abs(near - line).min())

        return sorted(lines, key=distance)[:MAX_LITTLE_LINES]

    def _runs(self) -> Iterator[tuple[int, int]]:
        """The first rows are context and new lines follow, or the last ones and new lines precede.

        Then only as many lines give way as stand there one after another.
        """
        matcher, last = self._matcher, len(self._rows) - 1
        for row, step in ((0, 1), (last, -1)):
            for line in self._lines_of(row, ALIKE_RATIO):
                length = matcher.run_length(row, line, step, RUN_RATIO)
                equal = matcher.run_length(row, line, step, 1.0)
                for size in {*range(1, min(length, 4) + 1), equal, length, length - 1} - {0, -1}:
                    yield (line, line + size) if step > 0 else (line + 1 - size, line + 1)

    def _inserted(self) -> list[tuple[int, int]]:
        """First and last rows that stand next to each other, so that all rows between are new."""
        equal, num_lines = self._matcher.is_equal, len(self._original)
        num_rows = len(self._rows)
        heads, tails = (np.zeros(num_lines + 1, np.int64) for _ in range(2))
        head = tail = np.ones(num_lines + 1, bool)
        for size in range(1, min(num_rows - 1, MAX_BORDER_ROWS, num_lines) + 1):
            # [start] of `size` lines that are the first rows, and [end] of those that are the last.
            head = head[:-1] & equal[size - 1, size - 1 :]
            tail = tail[1:] & equal[num_rows - size, : num_lines - size + 1]
            heads[size:][head] = size
            tails[: num_lines - size + 1][tail] = size
        weights = np.concatenate([[0.0], np.cumsum(self._matcher.row_weights)])
        found = np.nonzero((heads > 0) & (tails > 0) & (heads + tails < num_rows))[0]
        shown = weights[heads[found]] + weights[-1] - weights[num_rows - tails[found]]
        order = np.argsort(-shown, kind="stable")[:MAX_INSERTED]
        return [(int(at - heads[at]), int(at + tails[at])) for at in found[order]]

    def _run_key(self, span: tuple[int, int]) -> float:
        return -float(self._matcher.evidence[:, span[0] : span[1]].max(axis=0).sum())

    def _blocks(self) -> Iterator[tuple[int, int]]:
        """A line like the first row and its whole block, with the line that closes it or not."""
        found = []
        for line in self._lines_of(0, ALIKE_RATIO):
            end = self._original.block_end(line)
            self._put(self._ends, end, 0)
            found.append((line, end))
            if end < len(self._original):
                self._put(self._ends, end + 1, 0)
                found.append((line, end + 1))
        for line in self._lines_of(len(self._rows) - 1, ALIKE_RATIO):
            end = self._original.block_end(line)
            if end > line + 1:
                self._put(self._ends, end, 0)
                self._put(self._ends, end + 1, 0)
        yield from sorted(found, key=lambda span: span[1] - span[0])

    def _framed(self) -> list[tuple[int, int]]:
        """The shortest spans from a line like the first row to a line like the last one."""
        starts = [place for place, rank in self._starts.items() if not rank]
        ends = [place for place, rank in self._ends.items() if not rank]
        longest = 4 * len(self._rows) + MAX_FRAME_LINES
        spans = [(start, end) for start in starts for end in ends if start <= end < start + longest]
        return sorted(spans, key=lambda span: (span[1] - span[0], span))[:MAX_FRAMED]

    def _aligned(self) -> list[tuple[int, int]]:
        """The spans whose lines are most like the rows, best first."""
        if not self._starts or not self._ends:
            return []
        starts = sorted(self._starts, key=self._starts.__getitem__)[:MAX_STARTS]
        ends = np.array(sorted(self._ends))
        best = self._matcher.best_scores(starts)
        totals = np.concatenate([[0], np.cumsum(self._matcher.line_weights)])
        scores: dict[tuple[int, int], float] = {}
        for number, start in enumerate(starts):
            behind = ends[ends >= start]
            found = best[number, behind]
            lost = np.maximum(totals[behind] - totals[start] - found, 0)
            score = found - LOST_COST * lost - RANK_COST * self._starts[start]
            for place in np.argsort(-score)[:MAX_ENDS_PER_START]:
                scores[start, int(behind[place])] = float(score[place])
        spans = sorted(scores, key=lambda span: -scores[span])[:MAX_ALIGNED]
        if spans and self._matcher.row_weights.max() >= 0.4:
            self._found_share = scores[spans[0]] / max(float(self._matcher.telling.sum()), 0.1)
        return spans

    def _insertions(self, aligned: Sequence[tuple[int, int]]) -> list[int]:
        """Borders of blocks where the whole segment may be new, by the words around them."""
        original = self._original
        words = {word for row in self._rows for word in WORD.findall(row.text)}
        depths = {self._rows[0].indent}
        if aligned and aligned[0][0] < len(original):
            depths.add(original.indents[aligned[0][0]])
        scores: dict[int, float] = {}
        for depth in sorted(depths):
            for place in self._borders(depth):
                near = 0.0
                for line in range(
                    max(0, place - NEAR_LINES), min(len(original), place + NEAR_LINES)
                ):
                    shared = original.words[line] & words
                    distance = 1 + abs(line + 0.5 - place)
                    near += sum(1 / original.word_counts[word] for word in shared) / distance
                near += 0.5 * (place in (0, len(original)))
                scores[place] = max(scores.get(place, 0.0), near)
        share = self._found_share
        how = "little" if share < LITTLE_FOUND else "some" if share < MUCH_FOUND else "much"
        order = sorted(scores, key=lambda place: -scores[place])
        chosen = order[: MAX_INSERTIONS[how]]
        ends = [place for place in order[MAX_INSERTIONS[how] :] if self._ends_block(place)]
        return chosen + ends[:MAX_BLOCK_ENDS]

    def _ends_block(self, place: int) -> bool:
        """Whether what stands below a place is less deep than what stands above."""
        indents = self._original.indents
        return place > 0 and (place == len(indents) or indents[place] < indents[place - 1])

    def _borders(self, depth: int) -> Iterator[int]:
        """Places where a line of indentation `depth` may stand beside its siblings."""
        original = self._original
        for place in range(len(original) + 1):
            above = original.indents[place - 1] if place else -1
            below = original.indents[place] if place < len(original) else -1
            opens = place > 0 and original.lines[place - 1].endswith((*BLOCK_OPENERS, ">"))
            if below == depth or not place or (below <= depth and (above >= depth or opens)):
                yield place
