"""References: token ids that the answer probably copies, each with the answer's place in it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from lookup.suffix_automaton import ROOT, SuffixAutomaton

SEPARATOR = -1
MAX_MATCH = 32
MAX_FAR_PLACES = 64
MAX_NEAR_PLACES = 64
WINDOW_BEHIND = 64
WINDOW_AHEAD = 512
# Of the output, so many tokens are looked through for the latest repetition.
WINDOW_WRITTEN = 1024
# In tokens of match.
DISTANCE_COST_PER_BIT = 0.4
BACKWARD_COST = 2.0
MAX_DISTANCE_COST = 3.0


@dataclass(frozen=True, slots=True)
class Anchor:
    """A place to copy from: `position` follows `match_length` tokens that end the output."""

    position: int
    match_length: int


class Reference:
    """One static source of drafts with its automaton and its place.

    `place` is the position of the token that the answer would copy next from here; its owner
    writes it. The automaton is built by the first call that needs it, or ahead by `build`.
    """

    __slots__ = (
        "_automaton",
        "_match",
        "_max_far_places",
        "_num_seen",
        "_state",
        "name",
        "place",
        "token_ids",
        "trust",
    )

    def __init__(
        self,
        name: str,
        token_ids: Sequence[int],
        *,
        trust: float,
        max_far_places: int = MAX_FAR_PLACES,
    ) -> None:
        self.name = name
        self._max_far_places = max_far_places
        self.token_ids = list(token_ids)
        self.trust = trust
        self.place = 0
        self._automaton: SuffixAutomaton | None = None
        self._state = ROOT
        self._match = 0
        self._num_seen = 0

    def __len__(self) -> int:
        return len(self.token_ids)

    def stop_behind(self, position: int) -> int:
        """Where a copy that starts at `position` must end."""
        return max(position, len(self.token_ids))

    @property
    def automaton(self) -> SuffixAutomaton:
        """The automaton over `token_ids`, built now if it was not yet."""
        if self._automaton is None:
            self._automaton = SuffixAutomaton(self.token_ids)
        return self._automaton

    def build(self) -> None:
        """Build the automaton and its end positions ahead of the first search."""
        self.automaton.num_ends(ROOT)

    def anchors(self, output: Sequence[int]) -> list[Anchor]:
        """Places after a suffix of `output`: the longest match anywhere, any match near `place`.

        `output` must only grow from call to call. If the longest match ends at more than
        `max_far_places` positions, only those near `place` are given. Matches count up to
        `MAX_MATCH`.
        """
        automaton = self.automaton
        self._catch_up(output)
        found: dict[int, int] = {}
        if self._match and automaton.num_ends(self._state) <= self._max_far_places:
            match = min(self._match, MAX_MATCH)
            found = dict.fromkeys(automaton.end_positions(self._state), match)
        if self._match:
            self._search_near(output, found)
        return [Anchor(position, match) for position, match in found.items()]

    def score(self, anchor: Anchor) -> float:
        """The preference for a place: match and trust less the distance from `place`."""
        distance = anchor.position - self.place
        cost = min(MAX_DISTANCE_COST, DISTANCE_COST_PER_BIT * abs(distance).bit_length())
        if distance < 0:
            cost += BACKWARD_COST
        return anchor.match_length + self.trust - cost

    def _catch_up(self, output: Sequence[int]) -> None:
        """Advance the automaton's state to the end of `output`, from the last tokens only."""
        num_new = len(output) - self._num_seen
        if num_new > 2 * MAX_MATCH:
            self._state, self._match = ROOT, 0
            num_new = 2 * MAX_MATCH
        self._num_seen = len(output)
        recent = output[len(output) - num_new :]
        self._state, self._match = self.automaton.advance(self._state, self._match, recent)

    def _search_near(self, output: Sequence[int], found: dict[int, int]) -> None:
        """Add the places near `place` that follow the output's last token."""
        begin = max(0, self.place - WINDOW_BEHIND)
        window = self.token_ids[begin : self.place + WINDOW_AHEAD]
        last, at, num_found = output[-1], -1, 0
        while num_found < MAX_NEAR_PLACES:
            try:
                at = window.index(last, at + 1)
            except ValueError:
                return
            num_found += 1
            position = begin + at + 1
            if position not in found:
                found[position] = self._match_before(output, position)

    def _match_before(self, output: Sequence[int], position: int) -> int:
        """Number of tokens, at most `MAX_MATCH`, that agree before `position` and the end."""
        limit = min(position, len(output), MAX_MATCH)
        tokens, size = self.token_ids, len(output)
        match = 1
        while match < limit and tokens[position - match - 1] == output[size - match - 1]:
            match += 1
        return match


class SegmentedReference(Reference):
    """The snippet: segments joined by a separator that no output holds."""

    __slots__ = ("ends", "starts")

    def __init__(
        self,
        name: str,
        segments: Sequence[Sequence[int]],
        *,
        trust: float,
        max_far_places: int = MAX_FAR_PLACES,
    ) -> None:
        joined: list[int] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        for segment in segments:
            self.starts.append(len(joined))
            joined.extend(segment)
            self.ends.append(len(joined))
            joined.append(SEPARATOR)
        super().__init__(name, joined, trust=trust, max_far_places=max_far_places)

    def segment_at(self, position: int) -> int:
        """Index of the segment that holds `position`; its end belongs to it."""
        return bisect_right(self.starts, position) - 1

    def stop_behind(self, position: int) -> int:
        """The end of the segment, so that no separator is copied."""
        return max(position, self.ends[self.segment_at(position)])


class OutputReference(Reference):
    """The output so far, as a source of its own repetitions.

    `token_ids` is the output itself. Its automaton grows when it is asked, and a place is given
    only after at least `min_match` repeated tokens.
    """

    __slots__ = ("_growing", "_min_match")

    def __init__(self, name: str, *, trust: float, min_match: int) -> None:
        super().__init__(name, (), trust=trust)
        self._growing = SuffixAutomaton()
        self._min_match = min_match

    def anchors(self, output: Sequence[int]) -> list[Anchor]:
        """The place after the last earlier occurrence of the longest repeated suffix.

        The last `WINDOW_WRITTEN` tokens are searched; before them the first occurrence counts.
        """
        self._growing.extend(output[len(self._growing) :])
        state, match = self._growing.repeated_suffix()
        if match < self._min_match:
            return []
        position = self._latest_end(output, min(match, MAX_MATCH)) or self._growing.first_end(state)
        return [Anchor(position, min(match, MAX_MATCH))]

    def score(self, anchor: Anchor) -> float:
        """Match and trust; distance does not count, because no place in the output is far."""
        return anchor.match_length + self.trust

    def repeated(self, start: int, count: int) -> list[int]:
        """`count` tokens from `start` on; behind the end of the output they start over.

        So an answer that has begun to repeat itself is followed as far as is wanted.
        """
        period = self.token_ids[start : start + count]
        num_periods = -(-count // len(period)) if period else 0
        return (period * num_periods)[:count]

    def _latest_end(self, output: Sequence[int], match: int) -> int | None:
        """The nearest earlier end of the last `match` tokens; None if far away."""
        size = len(output)
        suffix, last = output[size - match :], output[-1]
        backwards = output[max(0, size - 1 - WINDOW_WRITTEN) : size - 1][::-1]
        at = -1
        while True:
            try:
                at = backwards.index(last, at + 1)
            except ValueError:
                return None
            end = size - 1 - at
            if output[end - match : end] == suffix:
                return end
