"""Finds the best ways through the candidates of all parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from apply_service.edit.place.candidates.part import Part
from apply_service.edit.place.candidates.way import Way, possible_move
from apply_service.edit.place.features.candidate_features import (
    CANDIDATE_FEATURES,
    candidate_rows,
)
from apply_service.edit.place.features.feature import Rows
from apply_service.edit.place.features.step_features import StepTable, step_rows
from apply_service.edit.text.work_budget import spend

Scorer = Callable[[Rows], NDArray[np.float64]]

WIDTH = 10
# Candidates of a part that follow each way: the likeliest, and those with room behind it.
NUM_LIKELIEST = 12
NUM_INSIDE, NUM_NEXT, NUM_BLOCK_ENDS = 8, 3, 6
NEXT_LINES = 2
# The log odds that none of the candidates is right.
NONE_SCORE = -3.0
MAX_MOVED_GAPS = 3
# How many comparisons of two lines take as long as the features of one.
COMPARISONS_A_CANDIDATE, COMPARISONS_A_STEP = 60, 20
# The score of candidates that no feature tells apart: removals and ends of blocks.
LOCAL_OF_OTHERS = -2.0


class Beam:
    """The search for one order of parts; `local` and `step` score rows of features."""

    def __init__(self, parts: Sequence[Part], local: Scorer | None, step: Scorer | None) -> None:
        self.parts = tuple(parts)
        self.rows: list[Rows] = []
        self.scores: list[NDArray[np.float64]] = []
        for part in parts:
            spend(COMPARISONS_A_CANDIDATE * len(part.candidates))
            if part.kind != "segment":
                self.rows.append(np.zeros((len(part.candidates), 0), np.float32))
                continue
            self.rows.append(candidate_rows(part))
        self.headers = _headers(parts)
        self.score(local, step)

    def score(self, local: Scorer | None, step: Scorer | None) -> None:
        """Score all candidates by themselves; `step` will score them behind others."""
        self._step = step
        self.scores = []
        for part, rows in zip(self.parts, self.rows, strict=True):
            if part.kind != "segment":
                self.scores.append(np.full(len(part.candidates), LOCAL_OF_OTHERS))
                continue
            raw = guesses(rows) if local is None else local(rows)
            self.scores.append(raw - np.logaddexp.reduce(raw) if len(raw) else raw)
        self._orders = [np.argsort(-scores, kind="stable") for scores in self.scores]

    def natural_order(self) -> list[int]:
        """The parts in the order in which they seem to stand in the file, by alignment alone.

        No fitted score is asked, so that scores are fitted to the same orders as they meet later.
        """
        starts = []
        for number, (part, rows) in enumerate(zip(self.parts, self.rows, strict=True)):
            best = int(np.argmax(guesses(rows))) if part.kind == "segment" else 0
            starts.append((part.candidates[best].start, number))
        return [number for _, number in sorted(starts)]

    def reordered(self, order: Sequence[int]) -> Beam:
        """The search with the parts in another order."""
        other = copy(self)
        other.parts = tuple(self.parts[number] for number in order)
        other.rows = [self.rows[number] for number in order]
        other.scores = [self.scores[number] for number in order]
        other._orders = [self._orders[number] for number in order]
        other.headers = _headers(other.parts)
        return other

    def search(self, limit: int) -> list[Way]:
        """The best ways, at most `limit`, the likeliest first."""
        ways = [Way(self.parts)]
        for number in range(len(self.parts)):
            is_last = number == len(self.parts) - 1
            ways = self._extend(ways, number, max(WIDTH, limit) if is_last else WIDTH)
        return [moved_way for way in ways[:limit] for moved_way in _with_moves(way)]

    def _extend(self, ways: Sequence[Way], number: int, limit: int) -> list[Way]:
        """The likeliest `limit` ways with a candidate of part `number` behind them."""
        if not ways:
            return []
        table = self.steps(ways, number)
        spend(COMPARISONS_A_STEP * len(table.choices))
        scores = table.local if self._step is None else self._step(step_rows(table))
        totals = np.full(len(ways), NONE_SCORE)
        np.logaddexp.at(totals, table.owners, scores)
        scores = scores - totals[table.owners]
        sums = np.array([way.score for way in ways])[table.owners] + scores
        candidates = self.parts[number].candidates
        found = []
        for step in np.argsort(-sums, kind="stable")[:limit].tolist():
            way = ways[table.owners[step]]
            found.append(
                replace(
                    way,
                    candidates=(*way.candidates, candidates[table.choices[step]]),
                    step_scores=(*way.step_scores, float(scores[step])),
                    local_scores=(*way.local_scores, float(table.local[step])),
                )
            )
        return found

    def steps(self, ways: Sequence[Way], number: int, required: Sequence[int] = ()) -> StepTable:
        """The candidates of part `number` that may follow each way; `required` ones among them."""
        starts = self.parts[number].starts
        choices = [
            [
                choice
                for choice in dict.fromkeys([*self._choices(way, number), *required])
                if starts[choice] >= way.end
            ]
            for way in ways
        ]
        return StepTable(ways, choices, self.scores[number], self.headers[number])

    def _choices(self, way: Way, number: int) -> list[int]:
        part, order = self.parts[number], self._orders[number]
        original, end = part.original, way.end
        starts = part.starts[order]
        if part.kind == "block_end":
            is_end = np.isin(starts, original.arrays.block_ends[:end]) & (starts > end)
            return [*order[is_end][:NUM_BLOCK_ENDS].tolist(), len(part.candidates) - 1]
        is_behind = starts >= end
        behind, starts = order[is_behind], starts[is_behind]
        chosen: list[int] = behind[:NUM_LIKELIEST].tolist()
        rest, starts = behind[NUM_LIKELIEST:], starts[NUM_LIKELIEST:]
        header = self.headers[number]
        if header is not None:
            pairs = way.candidates[header[0]].pairs
            line = next((line for row, line in pairs if row == header[1]), None)
            if line is not None:
                is_inside = (starts > line) & (starts <= original.block_ends[line])
                chosen += rest[is_inside][:NUM_INSIDE].tolist()
        chosen += rest[starts <= end + NEXT_LINES][:NUM_NEXT].tolist()
        return chosen


def guesses(rows: Rows) -> NDArray[np.float64]:
    """How likely candidates seem before any score is fitted."""
    evidence, removed, change, shift, kept = (
        rows[:, CANDIDATE_FEATURES.names.index(name)].astype(np.float64)
        for name in ("evidence", "removed_weight", "balance_change", "shift", "num_kept_runs")
    )
    found: NDArray[np.float64] = (
        evidence - 0.16 * removed - 0.2 * np.abs(change) - 0.4 * (shift != 0) - 0.3 * kept
    )
    return found


def _headers(parts: Sequence[Part]) -> list[tuple[int, int] | None]:
    """For each part the last row of an earlier part that is less deep: the header above it."""
    headers: list[tuple[int, int] | None] = []
    open_rows: list[tuple[int, int]] = []
    for number, part in enumerate(parts):
        above = [
            (one, row) for one, row in open_rows if parts[one].rows[row].indent < part.first_indent
        ]
        headers.append(above[-1] if above and part.rows else None)
        for row, line in enumerate(part.rows):
            while open_rows and (
                parts[open_rows[-1][0]].rows[open_rows[-1][1]].indent >= line.indent
            ):
                open_rows.pop()
            open_rows.append((number, row))
    return headers


def _with_moves(way: Way) -> Iterator[Way]:
    """The way, and the same with gaps moved that a wrap or its end may move."""
    moves = [0] * len(way.candidates)
    for number in range(1, len(way.candidates)):
        above, candidate = way.candidates[number - 1], way.candidates[number]
        if candidate.start > above.end:
            moves[number] = possible_move(way.parts[number].original, way.parts, number, above)
    yield way
    if not any(moves):
        return
    choices = [tuple(moves)]
    moving = [number for number, move in enumerate(moves) if move]
    for one in moving[:MAX_MOVED_GAPS] if len(moving) > 1 else ():
        choices.append(tuple(move if number == one else 0 for number, move in enumerate(moves)))
    choices.append(tuple(max(move, 0) for move in moves))
    for choice in dict.fromkeys(choices):
        if any(choice):
            yield replace(way, moves=choice)
