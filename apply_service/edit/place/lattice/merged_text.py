"""The whole text that a way gives: blank lines included, equal lines as the original has them."""

from __future__ import annotations

from collections.abc import Sequence

from apply_service.edit.place.candidates.candidate import Candidate
from apply_service.edit.place.candidates.filled_lines import moved
from apply_service.edit.place.candidates.original_facts import OriginalFacts
from apply_service.edit.place.candidates.part import Part
from apply_service.edit.place.candidates.way import Way
from apply_service.edit.text.block_bounds import closes_block
from apply_service.edit.text.brackets import BLOCK_OPENERS
from apply_service.edit.text.words import begin_alike


def merged_text(original: OriginalFacts, way: Way) -> list[str]:
    """All lines of the merged text."""
    return _Writer(original).write(way)


class _Writer:
    """Writes the parts of one way between the lines that stay.

    `_next` is the first line of the original, blank ones counted, that is not written yet.
    """

    def __init__(self, original: OriginalFacts) -> None:
        self._original = original
        self._lines: list[str] = []
        self._next = 0

    def write(self, way: Way) -> list[str]:
        """All lines."""
        moves = way.moves or (0,) * len(way.candidates)
        place = 0
        for part, candidate, move in zip(way.parts, way.candidates, moves, strict=True):
            if candidate.start > place:
                self._keep(place, candidate.start, move)
            if part.rows:
                self._write_part(part, candidate)
            elif candidate.end > candidate.start:
                self._cut(candidate)
            place = candidate.end
        self._lines += self._original.all_lines[self._next :]
        return self._lines

    def _keep(self, start: int, end: int, move: int) -> None:
        """Filled lines [start, end) with the blank ones above each."""
        numbers, lines = self._original.numbers, self._original.all_lines
        last = numbers[end - 1] + 1
        kept = lines[self._next : last]
        self._lines += [moved(line, move) if line.strip() else line for line in kept]
        self._next = last

    def _cut(self, candidate: Candidate) -> None:
        """Leave lines out; of the blank ones above and below them the fewer go."""
        numbers, lines = self._original.numbers, self._original.all_lines
        above = list(lines[self._next : numbers[candidate.start]])
        # Directly below another cut the blank lines that it left are those above this one.
        is_below_cut = self._next == numbers[candidate.start]
        while is_below_cut and self._lines and not self._lines[-1].strip():
            above.insert(0, self._lines.pop())
        self._next = numbers[candidate.end - 1] + 1
        end = numbers[candidate.end] if candidate.end < len(numbers) else len(lines)
        below = list(lines[self._next : end])
        self._next = end
        at_border = not candidate.start or candidate.end == len(numbers)
        shorter, longer = sorted((above, below), key=lambda blank: len(blank))
        self._lines += shorter if at_border else longer

    def _write_part(self, part: Part, candidate: Candidate) -> None:
        if candidate.start == candidate.end:
            self._insert(part, candidate)
            return
        written = self._written(part, candidate)
        if not written:
            self._cut(candidate)
            return
        numbers = self._original.numbers
        above = self._original.all_lines[self._next : numbers[candidate.start]]
        num_kept = len(above)
        num_sent = part.rows[0].num_blank
        if self._takes_gap_below(part, candidate):
            num_kept = min(num_kept, num_sent)
        elif not above and candidate.start and _begins_new(candidate):
            above = [""] * min(num_sent, 2)
            num_kept = len(above)
        self._lines += above[:num_kept]
        self._next = numbers[candidate.end - 1] + 1
        self._lines += written

    def _takes_gap_below(self, part: Part, candidate: Candidate) -> bool:
        """Whether new lines end what stands above, so that the blank lines come behind them."""
        row = next((row for row, line in candidate.pairs if line == candidate.start), 0)
        indent = part.first_indent + candidate.shift
        is_deeper = indent > self._original.indents[candidate.start]
        goes_on = is_deeper or self._goes_on(candidate.start, part.rows[0].stripped)
        return row > 0 and goes_on and part.rows[row].num_blank > 0

    def _goes_on(self, place: int, text: str) -> bool:
        """Whether a line is one more of those that stand without a gap above a place."""
        original = self._original
        if place < 2 or original.numbers[place - 1] - original.numbers[place - 2] != 1:
            return False
        return all(begin_alike(text, line) for line in original.stripped[place - 2 : place])

    def _written(self, part: Part, candidate: Candidate) -> list[str]:
        """The rows and what stays between them, without blank lines at the borders."""
        numbers, lines = self._original.numbers, self._original.all_lines
        paired = dict(candidate.pairs)
        kept: dict[int, list[tuple[int, int]]] = {}
        for run in candidate.kept:
            kept.setdefault(run.row, []).append((run.start, run.end))
        written: list[str] = []
        # The filled line of the original that was written last, if one was.
        last: int | None = None
        blank: list[str] = []
        for row, one in enumerate(part.rows):
            for start, end in kept.get(row, ()):
                above = numbers[start - 1] + 1 if start else 0
                written += lines[above if written else numbers[start] : numbers[end - 1] + 1]
                last = end - 1
            blank += one.blank
            if not one.is_written or row in candidate.dropped:
                continue
            line = paired.get(row)
            own: Sequence[str] = ()
            if line is not None and last is not None and line == last + 1:
                own = lines[numbers[last] + 1 : numbers[line]]
            if written:
                written += own if len(own) == len(blank) else blank
            text = moved(one.text, candidate.shift_of(row))
            # A line sent again keeps the space at its end.
            is_again = line is not None and lines[numbers[line]].rstrip() == text
            written.append(
                lines[numbers[line]] if is_again and line is not None else text + one.tail
            )
            last, blank = line, []
        return written

    def _insert(self, part: Part, candidate: Candidate) -> None:
        """New lines between two that stay: which blank lines stand on which side."""
        original, numbers = self._original, self._original.numbers
        place = candidate.start
        end = numbers[place] if place < len(numbers) else len(original.all_lines)
        between = list(original.all_lines[self._next : end])
        written = self._written(part, candidate)
        above = original.stripped[place - 1] if place else ""
        below = original.stripped[place] if place < len(numbers) else ""
        self._next = end
        if not written:
            self._lines += between
            return
        first, last = written[0].strip(), written[-1].strip()
        is_deeper = (
            place < len(numbers)
            and place > 0
            and part.first_indent + candidate.shift > original.indents[place]
        )
        num_sent, num_sent_behind = part.rows[0].num_blank, part.num_blank_behind
        gap = self._gap_above(part, candidate)
        if not above:
            num_behind = max(len(between), num_sent_behind) if below else 0
            self._lines += [*written, *_blank(between, num_behind)]
        elif not below:
            num_before = max(num_sent, gap)
            self._lines += [*_blank(between, num_before), *written, *between]
        elif not between:
            num_behind = min(num_sent_behind, 2)
            if gap and not closes_block(below) and not is_deeper:
                num_behind = max(num_behind, gap)
            self._lines += [*[""] * max(min(num_sent, 2), gap), *written, *[""] * num_behind]
        elif part.names and not begin_alike(first, above) and not is_deeper:
            self._lines += [*between, *written, *between]
        elif begin_alike(first, above) or is_deeper or not begin_alike(last, below):
            num_before = max(min(num_sent, len(between)), gap)
            self._lines += [*_blank(between, num_before), *written, *between]
        else:
            num_behind = min(num_sent_behind, len(between))
            self._lines += [*between, *written, *_blank(between, num_behind)]

    def _gap_above(self, part: Part, candidate: Candidate) -> int:
        """Blank lines that a new definition has above it as others have, 0 for other lines."""
        original, place = self._original, candidate.start
        written = [row.stripped for row in part.rows if row.is_written]
        is_block = len(written) > 1 and any(line.endswith(BLOCK_OPENERS) for line in written)
        is_definition = part.names or place in original.definition_ends
        if not is_block or not is_definition or not place or original.opens(place - 1):
            return 0
        return original.usual_gap(part.first_indent + candidate.shift)


def _begins_new(candidate: Candidate) -> bool:
    """Whether rows stand before the one that is the first line to give way."""
    return any(row and line == candidate.start for row, line in candidate.pairs)


def _blank(known: Sequence[str], number: int) -> list[str]:
    """So many blank lines, with the space that known ones have."""
    return [known[one] if one < len(known) else "" for one in range(max(number, 0))]
