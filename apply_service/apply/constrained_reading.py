"""Reads an answer under a constraint line by line: the model's choices, and each line's source."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from apply_service.apply.decision import Branch, Decision
from apply_service.prompts.calibration import pooled_probabilities
from batching.events import RowEvidence
from lookup.merge_choices import MergeChoice, MergeDecision

if TYPE_CHECKING:
    from apply_service.apply.merge_constraint import MergeConstraint
    from apply_service.apply.planning.edit_plan import EditPlan
    from apply_service.edit.regions import Region
    from apply_service.prompts.merge_form import AnyMergeGrammar

# None is that of prose, for all that is known.
_LANGUAGES_OF_PARAGRAPHS = (None, "markdown")


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
    """Reads the answer of one region under a constraint, line by line.

    `first_line` is the number of lines of the result before the region. An answer that was cut
    off is read as if it continued along the heaviest merge.
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
        grammar = constraint.grammar()
        grammar.advance_all(token_ids)
        self._choices = _heaviest_choices(grammar)
        self._lines = [*self._spelled(self._choices), self._line_behind()]

    def decisions(self, evidence: Sequence[RowEvidence]) -> list[Decision]:
        """All decisions of the answer that have a row of evidence."""
        rows = {row.position: row for row in evidence if row.is_decision}
        grammar = self._constraint.grammar()
        found = []
        num_read = 0
        for made in grammar.decisions(self._token_ids):
            grammar.advance_all(self._token_ids[num_read : made.offset])
            num_read = made.offset
            found.append(self._decision(made, rows[made.offset], grammar))
        return found

    def line_at(self, position: int) -> tuple[int, str]:
        """The line, from 1 in the result, at an output position, and its text."""
        place = _place_of(self._lines, self._starts[position])
        return self._first_line + place + 1, self._lines[place].text

    def _decision(
        self, made: MergeDecision, row: RowEvidence, grammar: AnyMergeGrammar
    ) -> Decision:
        ways: dict[int, list[_Line]] = {}
        here = grammar.snapshot()
        for token_id in row.allowed_token_ids:
            grammar.advance(token_id)
            ways[token_id] = self._completed(grammar)
            grammar.restore(here)
        ways[made.chosen_token_id] = self._lines
        # Where one way ends a line and another goes on in it, that line is where they part.
        start = self._starts[made.offset]
        place = _parting(ways.values(), min(_place_of(lines, start) for lines in ways.values()))
        same_text_shares = self._same_text_shares(made)
        calibration = self._constraint.form.calibration
        branches = {
            token_id: Branch(
                ways[token_id][place].text,
                ways[token_id][place].origin,
                probability,
                same_text_share=same_text_shares.get(token_id, 0.0),
            )
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
            segments=frozenset(
                self._constraint.placements[choice.segment][0].segment
                for _, choices in made.alternatives
                for choice in choices
                if choice.omitted_line is None
            ),
        )

    def _same_text_shares(self, made: MergeDecision) -> dict[int, float]:
        """The share of each way whose placements make the same text.

        Blank lines are not compared. Only placements of the first segment at stake count. Empty
        where more than its placement is at stake, or where blank lines mean something.
        """
        if self._plan.language in _LANGUAGES_OF_PARAGRAPHS:
            return {}
        at_stake = [choice for _, choices in made.alternatives for choice in choices]
        if not at_stake or any(choice.omitted_line is not None for choice in at_stake):
            return {}
        segment = min(choice.segment for choice in at_stake)
        offered = self._constraint.placements[segment]
        taken = next(offered[one.placement] for one in self._choices if one.segment == segment)
        shares = {}
        for token_id, choices in made.alternatives:
            ahead = [offered[one.placement] for one in choices if one.segment == segment]
            heaviest = max((one.weight for one in ahead), default=0.0)
            temperature = self._constraint.form.calibration.temperature
            odds = [math.exp((one.weight - heaviest) / temperature) for one in ahead]
            same = (
                odd
                for one, odd in zip(ahead, odds, strict=True)
                if one.makes_same_text(taken, self._plan.original_lines)
            )
            shares[token_id] = sum(same) / sum(odds) if odds else 0.0
        return shares

    def _completed(self, grammar: AnyMergeGrammar) -> list[_Line]:
        """The lines of the heaviest answer from here on, and the line behind the region."""
        return [*self._spelled(_heaviest_choices(grammar)), self._line_behind()]

    def _spelled(self, choices: Sequence[MergeChoice]) -> Iterator[_Line]:
        """The lines that choices mean; the choices are in the order in which they were made."""
        left_out: dict[MergeChoice, set[int]] = {}
        for choice in choices:
            entered = MergeChoice(choice.segment, choice.placement)
            omitted = left_out.setdefault(entered, set())
            if choice.omitted_line is not None:
                omitted.add(choice.omitted_line)
        rules = self._constraint.rules
        place = 0
        for entered, omitted in left_out.items():
            placement = rules.segments[entered.segment].placements[entered.placement]
            yield from self._kept(place, placement.start)
            yield from self._taken(entered, omitted)
            place = placement.end
        yield from self._kept(place, len(rules.original))

    def _kept(self, start: int, end: int) -> Iterator[_Line]:
        rules = self._constraint.rules
        for place in range(start, end):
            if not any(low <= place < high for low, high in rules.removed):
                number = self._region.start + place
                text = self._plan.original_lines[number]
                yield _Line(text, _kept_origin(number), len(rules.original[place]))

    def _taken(self, entered: MergeChoice, omitted: set[int]) -> Iterator[_Line]:
        placement = self._constraint.placements[entered.segment][entered.placement]
        rule = self._constraint.rules.segments[entered.segment].placements[entered.placement]
        numbers = self._update_numbers(placement.segment, placement.lines)
        for place, tokens in enumerate(rule.lines):
            if place not in omitted:
                origin = f"takes line {numbers[place]} of the update"
                yield _Line(placement.lines[place], origin, len(tokens))

    def _update_numbers(self, segment: int, lines: Sequence[str]) -> list[int]:
        """The line of the update, from 1, for each line of a placement.

        A line in another form than it was sent in counts as the one before it.
        """
        assert self._plan.snippet is not None, "a constraint is made from a snippet"
        sent = self._plan.snippet.segments[segment].lines
        if len(lines) == len(sent):
            return [line.number for line in sent]
        numbers: list[int] = []
        place = 0
        for text in lines:
            same = (at for at in range(place, len(sent)) if sent[at].text.split() == text.split())
            place = next(same, max(place - 1, 0))
            numbers.append(sent[place].number)
            place += 1
        return numbers

    def _line_behind(self) -> _Line:
        original, end = self._plan.original_lines, self._region.end
        if end < len(original):
            return _Line(original[end], _kept_origin(end), 0)
        return _Line("", "ends the file", 0)


def _heaviest_choices(grammar: AnyMergeGrammar) -> Sequence[MergeChoice]:
    """The choices of the heaviest answer from here on.

    The position of the grammar is unchanged afterwards.
    """
    here = grammar.snapshot()
    grammar.advance_all(grammar.draft().token_ids)
    choices = grammar.chosen()
    grammar.restore(here)
    return choices


def _kept_origin(place: int) -> str:
    return f"keeps line {place + 1} of the original"


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
