"""A way through all parts of an update, and the text that it gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apply_service.edit.place.candidates.candidate import Candidate
from apply_service.edit.place.candidates.filled_lines import moved
from apply_service.edit.place.candidates.original_facts import OriginalFacts
from apply_service.edit.place.candidates.part import Part
from apply_service.edit.text.brackets import BLOCK_OPENERS

# A gap is moved by at most two tabs, or four steps of four spaces.
MAX_MOVE = 16


@dataclass(frozen=True, slots=True)
class Way:
    """A candidate for each part; lines between them stay.

    `moves` are the columns by which the lines before each part are moved. `step_scores` are log
    odds of each candidate behind those before it, `local_scores` of each by itself.
    """

    parts: tuple[Part, ...]
    candidates: tuple[Candidate, ...] = ()
    step_scores: tuple[float, ...] = ()
    local_scores: tuple[float, ...] = ()
    moves: tuple[int, ...] = ()

    @property
    def score(self) -> float:
        """How likely it is: the sum of its steps."""
        return sum(self.step_scores)

    @property
    def end(self) -> int:
        """The first line that is not read yet."""
        return self.candidates[-1].end if self.candidates else 0

    def lines(self, original: OriginalFacts) -> list[str]:
        """The filled lines of the merged text."""
        lines: list[str] = []
        place = 0
        moves = self.moves or (0,) * len(self.candidates)
        for part, candidate, move in zip(self.parts, self.candidates, moves, strict=True):
            kept = original.lines[place : candidate.start]
            lines += [moved(line, move) for line in kept] if move else kept
            lines += candidate.written(part.rows, original)
            place = candidate.end
        return lines + original.lines[place:]


def possible_move(
    original: OriginalFacts,
    parts: Sequence[Part],
    number: int,
    above: Candidate,
) -> int:
    """By how many columns the lines before part `number` may have to be moved; 0 if they stay.

    `above` is the candidate of the part before, and not the last line of the original.

    A marker that is deeper than the lines it stands for wraps them into the block that the part
    above opens; one less deep takes them out of a block.
    """
    part, before = parts[number], parts[number - 1]
    if part.indent_before is None or above.end >= len(original):
        return 0
    move = part.indent_before - original.indents[above.end]
    if not move or abs(move) > MAX_MOVE or not before.rows:
        return 0
    last = before.last_indent + above.shift
    opens = before.rows[-1].text.endswith((*BLOCK_OPENERS, ">"))
    if above.pairs and above.pairs[-1][0] == len(before.rows) - 1:
        own = last - original.indents[above.pairs[-1][1]]
        if own and abs(own) <= MAX_MOVE:
            return own
        if not opens:
            return 0
    if move > 0:
        return move if part.indent_before >= last else 0
    is_inside = part.indent_before > last and opens
    return move if part.indent_before > 0 and (part.indent_before == last or is_inside) else 0
