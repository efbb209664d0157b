"""Reads an answer under a constraint: the model's choices, and the source of each line."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from apply_service.apply.decision import Branch, Decision
from apply_service.edit.text.alignment import matching_blocks
from apply_service.prompts.calibration import pooled_probabilities
from batching.events import RowEvidence
from lookup.merge_automaton import MergeDecision

if TYPE_CHECKING:
    from apply_service.apply.merge_constraint import MergeConstraint
    from apply_service.apply.planning.edit_plan import EditPlan
    from apply_service.edit.regions import Region


class _Line(NamedTuple):
    text: str
    origin: str
    num_symbols: int


def branch_probabilities(
    row: RowEvidence, *, prior_scale: float = 1.0, temperature: float = 1.0
) -> dict[int, float]:
    """The probability of each allowed token, with the constraint's prior; the sum is 1."""
    prior = row.log_prior or (0.0,) * len(row.logprobs)
    scores = (logprob + added for logprob, added in zip(row.logprobs, prior, strict=True))
    found = pooled_probabilities(scores, prior_scale=prior_scale, temperature=temperature)
    return dict(zip(row.allowed_token_ids, found, strict=True))


class ConstrainedReading:
    """Reads the answer of one region under a constraint.

    `first_line` is the number of lines of the result before the region. An answer that was cut
    off is read as if it continued along the likeliest merge.
    """

    def __init__(
        self,
        plan: EditPlan,
        region: Region,
        constraint: MergeConstraint,
        token_ids: Sequence[int],
        *,
        first_line: int,
    ) -> None:
        """Raises `TokenNotAllowedError` if the answer breaks the constraint."""
        self._plan = plan
        self._region = region
        self._constraint = constraint
        self._token_ids = token_ids
        self._first_line = first_line
        self._starts = constraint.form.symbol_starts(token_ids)
        self._known: dict[int, list[_Line]] = {}
        grammar = constraint.grammar()
        grammar.advance_all(token_ids)
        self._lines = self._lines_of(grammar.chosen())

    def decisions(self, evidence: Sequence[RowEvidence]) -> list[Decision]:
        """All decisions of the answer that have a row of evidence."""
        rows = {row.position: row for row in evidence if row.is_decision}
        made = self._constraint.grammar().decisions(self._token_ids)
        return [self._decision(one, rows[one.offset]) for one in made]

    def line_at(self, position: int) -> tuple[int, str]:
        """The line, from 1 in the result, at an output position, and its text."""
        place = _place_of(self._lines, self._starts[position])
        return self._first_line + place + 1, self._lines[place].text

    def _decision(self, made: MergeDecision, row: RowEvidence) -> Decision:
        weights = [text.weight for text in self._constraint.rules.texts]
        ways = {
            token_id: self._lines_of(max(texts, key=lambda number: weights[number]))
            for token_id, texts in made.alternatives
            if texts
        }
        ways[made.chosen_token_id] = self._lines
        # Where one way ends a line and another goes on in it, that line is where they part.
        start = self._starts[made.offset]
        place = _parting(ways.values(), min(_place_of(lines, start) for lines in ways.values()))
        calibration = self._constraint.form.calibration
        branches = {
            token_id: Branch(*ways[token_id][place][:2], probability)
            for token_id, probability in branch_probabilities(
                row, prior_scale=calibration.prior_scale, temperature=calibration.temperature
            ).items()
        }
        chosen = branches.pop(made.chosen_token_id)
        return Decision(
            line=self._first_line + place + 1,
            chosen=chosen,
            alternatives=tuple(sorted(branches.values(), key=lambda one: -one.probability)),
            outside_mass=row.outside_mass,
        )

    def _lines_of(self, number: int) -> list[_Line]:
        """The lines of a text with their sources, and the line behind the region."""
        if number not in self._known:
            text = self._constraint.texts[number]
            sizes = map(len, self._constraint.form.lines(text))
            lines = zip(text, self._origins(text), sizes, strict=True)
            self._known[number] = [*(_Line(*line) for line in lines), self._line_behind()]
        return self._known[number]

    def _origins(self, text: Sequence[str]) -> list[str]:
        original = self._plan.original_lines[self._region.start : self._region.end]
        origins = [_update_origin(self._sent_numbers.get(line.strip())) for line in text]
        for block in matching_blocks(original, text):
            for step in range(block.length):
                place = self._region.start + block.old_start + step
                origins[block.new_start + step] = _kept_origin(place)
        return origins

    @cached_property
    def _sent_numbers(self) -> dict[str, int]:
        """The number in the update of each line that was sent, by its text."""
        assert self._plan.snippet is not None, "a constraint is made from a snippet"
        sent = [line for segment in self._plan.snippet.segments for line in segment.lines]
        return {line.text.strip(): line.number for line in reversed(sent)}

    def _line_behind(self) -> _Line:
        original, end = self._plan.original_lines, self._region.end
        if end < len(original):
            return _Line(original[end], _kept_origin(end), 0)
        return _Line("", "ends the file", 0)


def _kept_origin(place: int) -> str:
    return f"keeps line {place + 1} of the original"


def _update_origin(number: int | None) -> str:
    return "comes from the update" if number is None else f"takes line {number} of the update"


def _parting(ways: Collection[Sequence[_Line]], place: int) -> int:
    """The first place from `place` on at which the lines of the ways differ.

    A token may reach ahead. Ways that have the same text throughout part at `place`.
    """
    for later in range(place, min(map(len, ways))):
        if len({lines[later].text for lines in ways}) > 1:
            return later
    return place


def _place_of(lines: Sequence[_Line], offset: int) -> int:
    """The index of the line that holds the symbol at `offset`; that of the last one for the end."""
    ends = list(accumulate(line.num_symbols for line in lines[:-1]))
    return bisect_right(ends, offset)
