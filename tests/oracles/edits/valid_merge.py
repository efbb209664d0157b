"""What a valid merge is, said in one place and without regard to speed.

A merge is valid if every segment stands in the place of some lines of the original, the places
rise and do not overlap, and each of them is valid for its segment. A place `[start, end)` is valid
for a lazy segment if the original tells both of its borders. A *run* is a stretch of segment lines
that are lines of the original, indentation aside. There must be a first and a last run, and a way
from one to the other on which each run lies behind the one before on both sides, such that

- `start` is where the first run begins in the original, if the segment begins with it;
- or it is where new lines before that run go: directly before it, before blank lines above it,
  before a line there that one of the new lines looks like, before as many lines as there are new
  ones, if these are few, before one to three lines almost all of whose words are among those of
  the new ones, or before all attributes there, if the new lines are nothing else;
- or it is behind lines at the beginning of the run that say little ("}"), which then are new;
- and `end` follows from the last run in the same way.

What lies between goes. A place is valid as well if nothing goes there: its lines are some that the
segment begins with, followed by some that it ends with.

Placements found by symbols add runs: a whole definition of the segment against the one of its name.
So do the first and the last line of a segment if the original has lines that they are variants of.
Guesses by order and variants are outside of this page: they are never certain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile

from apply_service.edit.place.placement import Placement
from apply_service.edit.place.segment_borders import (
    MAX_HEAD_LINES,
    MAX_REWRITTEN,
    MAX_SAME_COUNT,
    MAX_TRIMMED,
    MAX_WINDOW,
    MIN_FULLNESS,
    MIN_REWRITTEN_SHARE,
    MIN_REWRITTEN_WORDS,
)
from apply_service.edit.text.definition_names import is_attribute
from apply_service.edit.text.line_index import LineIndex, indent_of
from apply_service.edit.text.runs import Run
from apply_service.edit.text.similarity import Similarity
from apply_service.edit.text.word_weights import WordWeights


class ValidPlaces:
    """Which places are valid for one segment, given from its first to its last filled line.

    `further_runs` are those of lines that are not equal. With `is_first` the segment begins the
    file, with `is_last` it ends it: no marker stands there.
    """

    def __init__(
        self,
        original: Sequence[str],
        segment: Sequence[str],
        *,
        further_runs: Sequence[Run] = (),
        is_first: bool = False,
        is_last: bool = False,
    ) -> None:
        self._lines = [text if text.strip() else "" for text in segment]
        self._index = LineIndex([text if text.strip() else "" for text in original])
        self._new = [text.strip() for text in segment]
        self._old = self._index.stripped
        self._similarity = Similarity()
        self._weights = WordWeights(self._old)
        self._runs = [*maximal_runs(original, segment), *further_runs]
        if is_first:
            self._runs.append(Run(0, 0, 0, 0, 0.0, is_exact=True))
        if is_last:
            num_new, num_old = len(segment), len(original)
            self._runs.append(Run(num_new, num_new, num_old, num_old, 0.0, is_exact=True))
        self._is_first, self._is_last = is_first, is_last

    def is_valid(self, start: int, end: int) -> bool:
        """Whether the segment may stand in the place of lines `[start, end)`."""
        if (self._is_first and start > 0) or (self._is_last and end < len(self._old)):
            return False
        return self._is_insertion(start, end) or self._is_chained(start, end)

    def _is_chained(self, start: int, end: int) -> bool:
        return start <= end and any(
            start in self._starts(first) and end in self._ends(last)
            for first in self._runs
            for last in self._runs
            if self._may_be_first(first) and self._may_be_last(last)
            if self._leads_to(first, last)
        )

    def _is_insertion(self, start: int, end: int) -> bool:
        """Whether the lines `[start, end)` all stay around new ones."""
        total, size = len(self._lines), end - start
        for num_before in range(size + 1) if 0 < size < total else ():
            rest = total - (size - num_before)
            old = [*self._lines[:num_before], *self._lines[rest:]]
            has_new = any(line.strip() for line in self._lines[num_before:rest])
            if not has_new or old != self._index.lines[start:end]:
                continue
            if self._is_bordered(num_before, size - num_before):
                return True
        return False

    def _is_bordered(self, num_before: int, num_after: int) -> bool:
        """Whether lines with text stand on both sides of the new ones, or where no marker is."""
        if num_before and num_after:
            return True
        if num_after:
            return self._is_first or bool(self._new[-num_after])
        return self._is_last or bool(self._new[num_before - 1])

    def _may_be_first(self, run: Run) -> bool:
        return not self._is_first or run.old_end == 0

    def _may_be_last(self, run: Run) -> bool:
        return not self._is_last or run.old == len(self._old)

    def _leads_to(self, first: Run, last: Run) -> bool:
        reached, waiting = {first}, [first]
        while waiting:
            left = waiting.pop()
            for right in self._runs:
                if right not in reached and self._follows(left, right):
                    reached.add(right)
                    waiting.append(right)
        return last in reached

    def _follows(self, left: Run, right: Run) -> bool:
        """Whether lines with text of `right` lie behind `left` on both sides."""
        if left.is_border or right.is_border:
            return left != right and left.new_end <= right.new and left.old_end <= right.old
        overlap = max(0, left.new_end - right.new, left.old_end - right.old)
        rises = left.new < right.new and left.old_end < right.old_end
        if left.is_definition or right.is_definition:
            return rises and not overlap
        return rises and any(self._new[right.new + overlap : right.new_end])

    def _starts(self, run: Run) -> set[int]:
        head = [text for text in self._new[: run.new] if text]
        starts = {run.old} | {run.old + size for size in self._num_trivial(run, is_left=True)}
        if head:
            num_blank = _num_blank_at_end(self._new[: run.new])
            starts |= {run.old - size for size in self._blank_steps(run, num_blank, is_left=True)}
            starts |= self._same_count(run, run.old - len(head), run.old)
            starts |= self._rewritten(run, range(run.old - 1, -1, -1), head)
            starts |= self._attributes(run, head)
            floor = max(0, run.old - min(len(head) + 4, MAX_WINDOW))
            pairs = self._similarity.pairs(self._old[floor : run.old], head[-MAX_HEAD_LINES:])
            starts |= {floor + old for old, _, _ in pairs}
        return starts

    def _ends(self, run: Run) -> set[int]:
        tail = [text for text in self._new[run.new_end :] if text]
        ends = {run.old_end} | {
            run.old_end - size for size in self._num_trivial(run, is_left=False)
        }
        if tail:
            num_blank = _num_blank_at_end(self._new[: run.new_end - 1 : -1])
            ends |= {run.old_end + s for s in self._blank_steps(run, num_blank, is_left=False)}
            ends |= self._same_count(run, run.old_end, run.old_end + len(tail))
            below = self._rewritten(run, range(run.old_end, len(self._old)), tail)
            ends |= {place + 1 for place in below}
            window = self._old[run.old_end : run.old_end + min(len(tail) + 4, MAX_WINDOW)]
            pairs = self._similarity.pairs(window, tail[:MAX_HEAD_LINES])
            ends |= {run.old_end + old + 1 for old, _, _ in pairs}
        return ends

    def _num_trivial(self, run: Run, *, is_left: bool) -> Iterator[int]:
        """How many lines at one end of the run may be new ones: all that say little."""
        if run.is_definition or run.is_border:
            return
        lines = self._new[run.new : run.new_end]
        for size, text in enumerate((lines if is_left else lines[::-1])[:MAX_TRIMMED], start=1):
            if self._index.fullness(text) >= MIN_FULLNESS:
                return
            if text:
                yield size

    def _blank_steps(self, run: Run, num_new: int, *, is_left: bool) -> range:
        if run.is_border:
            return range(0)
        lines = self._old[: run.old] if is_left else self._old[: run.old_end - 1 : -1]
        if not is_left and run.old_end == 0:
            lines = self._old[::-1]
        return range(1, min(num_new, _num_blank_at_end(lines)) + 1)

    def _same_count(self, run: Run, start: int, end: int) -> set[int]:
        if run.is_border or end - start > MAX_SAME_COUNT or start < 0 or end > len(self._old):
            return set()
        return set() if "" in self._old[start:end] else {start, end}

    def _attributes(self, run: Run, new: Sequence[str]) -> set[int]:
        """The first of the attributes directly above the run, if all new lines are attributes."""
        if run.is_border or not all(map(is_attribute, new)):
            return set()
        above = takewhile(lambda place: is_attribute(self._old[place]), range(run.old - 1, -1, -1))
        return set(list(above)[-1:])

    def _rewritten(self, run: Run, outside: range, new: Sequence[str]) -> set[int]:
        """The outermost of the lines outside of the run whose words the new lines have."""
        if run.is_border:
            return set()
        words = self._weights.of_lines(new[:MAX_HEAD_LINES])
        filled = [place for place in outside if self._old[place]][: min(MAX_REWRITTEN, len(new))]
        found: set[int] = set()
        for size in range(1, len(filled) + 1):
            old = self._weights.of_lines(self._old[place] for place in filled[:size])
            if len(old) < MIN_REWRITTEN_WORDS:
                continue
            if self._weights.kept_share(old, words) >= MIN_REWRITTEN_SHARE:
                found = {filled[size - 1]}
        return found


def maximal_runs(original: Sequence[str], segment: Sequence[str]) -> list[Run]:
    """All runs that cannot be made longer, from a filled line to a filled line."""
    same = {
        (new, old)
        for new, text in enumerate(segment)
        for old, line in enumerate(original)
        if text.strip() == line.strip()
    }
    runs: set[Run] = set()
    for new, old in same:
        if segment[new].strip():
            first = _reach(segment, original, same, (new, old), -1)
            last = _reach(segment, original, same, (new, old), 1)
            runs.add(Run(first[0], last[0] + 1, first[1], last[1] + 1, 0.0, is_exact=True))
    return sorted(runs, key=lambda run: (run.old, run.new))


def is_valid_merge(
    original: Sequence[str], places: Sequence[ValidPlaces], placements: Sequence[Placement]
) -> bool:
    """Whether placements, one for each of `places` in their order, rise and are all valid."""
    return (
        len(places) == len(placements)
        and all(left.end <= right.start for left, right in pairwise(placements))
        and all(0 <= one.start <= one.end <= len(original) for one in placements)
        and all(
            place.is_valid(one.start, one.end)
            for place, one in zip(places, placements, strict=True)
        )
    )


def _reach(
    segment: Sequence[str],
    original: Sequence[str],
    same: set[tuple[int, int]],
    at: tuple[int, int],
    step: int,
) -> tuple[int, int]:
    """The last pair of filled lines in one direction with the same shift of indentation."""
    reached, pair = at, (at[0] + step, at[1] + step)
    while pair in same:
        if segment[pair[0]].strip():
            if _shift(segment, original, pair) != _shift(segment, original, at):
                break
            reached = pair
        pair = (pair[0] + step, pair[1] + step)
    return reached


def _shift(segment: Sequence[str], original: Sequence[str], pair: tuple[int, int]) -> int:
    return len(indent_of(original[pair[1]])) - len(indent_of(segment[pair[0]]))


def _num_blank_at_end(lines: Sequence[str]) -> int:
    count = 0
    for text in reversed(lines):
        if text:
            break
        count += 1
    return count
