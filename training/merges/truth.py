"""Which candidates of an update lead to the text that is right."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from apply_service.edit.place.candidates.filled_lines import moved
from apply_service.edit.place.candidates.original_facts import OriginalFacts
from apply_service.edit.place.candidates.part import Part
from apply_service.edit.place.candidates.way import possible_move

MAX_STATES = 200_000


@dataclass(frozen=True, slots=True)
class State:
    """All parts before `number` are placed, the last one by its candidate `above` (-1: none).

    `read` lines of the right text are written.
    """

    number: int
    above: int
    read: int


class Truth:
    """The right ways through the parts of one order to one text without its blank lines."""

    def __init__(
        self, original: OriginalFacts, parts: Sequence[Part], expected: Sequence[str]
    ) -> None:
        self._original = original
        self._parts = parts
        self._expected = list(expected)
        self._known: dict[State, list[tuple[int, State]]] = {}
        self._by_start: list[dict[int, list[tuple[int, list[str]]]]] = []
        for part in parts:
            by_start: dict[int, list[tuple[int, list[str]]]] = defaultdict(list)
            for choice, one in enumerate(part.candidates):
                by_start[one.start].append((choice, one.written(part.rows, original)))
            self._by_start.append(by_start)
        self.exists = self._leads(State(0, -1, 0))

    def choices(self, state: State) -> list[tuple[int, State]]:
        """The right candidates of the next part, each with the state behind it."""
        return self._known.get(state, [])

    def pairs(self) -> Iterator[tuple[int, int]]:
        """All parts and candidates on right ways."""
        seen: set[State] = set()
        todo = [State(0, -1, 0)] if self.exists else []
        while todo:
            state = todo.pop()
            if state in seen:
                continue
            seen.add(state)
            for choice, behind in self.choices(state):
                yield state.number, choice
                todo.append(behind)

    def _leads(self, state: State) -> bool:
        number, place = state.number, self._end(state)
        if number == len(self._parts):
            return self._original.lines[place:] == self._expected[state.read :]
        if state in self._known:
            return bool(self._known[state])
        if len(self._known) > MAX_STATES:
            return False
        found: list[tuple[int, State]] = []
        self._known[state] = found
        for move in self._moves(state):
            length = self._num_equal(place, state.read, move)
            for start in range(place + bool(move), place + length + 1):
                for choice, written in self._by_start[number].get(start, ()):
                    read = state.read + start - place
                    if self._expected[read : read + len(written)] != written:
                        continue
                    behind = State(number + 1, choice, read + len(written))
                    if self._leads(behind):
                        found.append((choice, behind))
        return bool(found)

    def _end(self, state: State) -> int:
        if state.number == 0:
            return 0
        return self._parts[state.number - 1].candidates[state.above].end

    def _moves(self, state: State) -> list[int]:
        """By how many columns the lines before the next part may be moved."""
        if state.number == 0:
            return [0]
        above = self._parts[state.number - 1].candidates[state.above]
        move = possible_move(self._original, self._parts, state.number, above)
        return [0, move] if move else [0]

    def _num_equal(self, line: int, read: int, move: int) -> int:
        length = 0
        while line + length < len(self._original) and read + length < len(self._expected):
            kept = self._original.lines[line + length]
            if (moved(kept, move) if move else kept) != self._expected[read + length]:
                break
            length += 1
        return length
