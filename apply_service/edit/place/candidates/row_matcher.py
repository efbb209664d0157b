"""Compares the rows of a segment with all lines of the original, and aligns them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz, process

from apply_service.edit.place.candidates.filled_lines import FilledLines
from apply_service.edit.place.candidates.rows import Row
from apply_service.edit.text.work_budget import spend

Floats = NDArray[np.float32]

MIN_RATIO = 60
# A line whose words were put into another order, or that grew much, is more alike in part.
MIN_PART_RATIO = 75
SET_DISCOUNT, PART_DISCOUNT = 1.12, 1.2
MAX_RATIO_OF_GROWN = 0.85
RATIO_OF_ELLIPSIS = 0.98
MIN_LETTERS_OF_GROWN = 7
# Longer lines are compared by their beginning, by more of it than where one line is looked for; as
# many pairs take as long as one comparison.
MAX_LINE_CHARS, PAIRS_PER_COMPARISON = 400, 8
# A ratio below this one says nothing.
NO_RATIO = 0.35
OTHER_INDENT_SHARE = 0.93
LITTLE_WEIGHT = 0.3
MAX_LISTED = 100_000


class RowMatcher:
    """How alike the rows of one segment are to the lines of an original.

    `ratios [num_rows, num_lines]` are 1 for equal lines, `evidence [num_rows, num_lines]` says how
    much it tells that a row stands there: the likeness, less for short and for frequent lines.
    """

    def __init__(self, original: FilledLines, rows: Sequence[Row]) -> None:
        self._original = original
        self._rows = rows
        spend(len(rows) * len(original) // PAIRS_PER_COMPARISON)
        texts = [row.stripped for row in rows]
        self.is_equal = _equal(texts, original)
        shown = [text[:MAX_LINE_CHARS] for text in texts]
        ratios = _ratios(shown, [line[:MAX_LINE_CHARS] for line in original.stripped])
        _see_ellipses(ratios, texts, original.stripped)
        gains = np.where(self.is_equal, 1.0, np.maximum(ratios - NO_RATIO, 0) * 1.1)
        self.row_weights = np.array([weight_of(text) for text in texts], np.float32)
        self.line_weights = np.array([weight_of(text) for text in original.stripped], np.float32)
        for number, row in enumerate(rows):
            if self.row_weights[number] < LITTLE_WEIGHT or not row.is_written:
                gains[number] = np.where(self.is_equal[number], 1.0, 0.0)
            if not row.is_found:
                gains[number] = 0.0
        rarity = [1 / (1 + 0.35 * math.log(max(1, original.counts[text]))) for text in texts]
        self.telling = self.row_weights * np.array(rarity, np.float32)
        self.ratios: Floats = np.where(self.is_equal, 1.0, ratios).astype(np.float32)
        indents = np.array([row.indent for row in rows])[:, None]
        share = np.where(indents == np.array(original.indents)[None, :], 1.0, OTHER_INDENT_SHARE)
        self.evidence: Floats = (gains * self.telling[:, None] * share).astype(np.float32)

    @cached_property
    def best_ratios(self) -> Floats:
        """`[num_lines]`: how alike each line is to the row that is most alike."""
        best: Floats = self.ratios.max(axis=0, initial=0.0)
        return best

    @cached_property
    def best_above(self) -> Floats:
        """`[num_rows, num_lines]`: the likeness of the most alike row down to each one."""
        best: Floats = np.maximum.accumulate(self.ratios, axis=0)
        return best

    @cached_property
    def best_below(self) -> Floats:
        """`[num_rows, num_lines]`: the likeness of the most alike row from each one on."""
        best: Floats = np.maximum.accumulate(self.ratios[::-1], axis=0)[::-1]
        return best

    def best_scores(self, starts: Sequence[int]) -> Floats:
        """`[num_starts, num_lines + 1]`: the best alignment of all rows with lines [start, end)."""
        num_lines = len(self._original)
        scores = np.zeros((len(starts), num_lines + 1), np.float32)
        is_behind = np.arange(num_lines)[None, :] >= np.array(starts)[:, None]
        for evidence in self.evidence:
            if evidence.any():
                taken = scores[:, :-1] + np.where(is_behind, evidence[None, :], 0)
                scores[:, 1:] = np.maximum(scores[:, 1:], taken)
                np.maximum.accumulate(scores, axis=1, out=scores)
        return scores

    def alignments(self, start: int, ends: Sequence[int]) -> Iterator[list[tuple[int, int]]]:
        """The best alignment with lines [start, end), for each end: pairs of a row and a line.

        Rows and lines of the pairs rise.
        """
        evidence = self.evidence[:, start : max(ends)]
        sums = np.zeros((len(evidence) + 1, evidence.shape[1] + 1), np.float32)
        for row, gains in enumerate(evidence):
            best = sums[row + 1]
            best[0] = sums[row, 0]
            np.maximum(sums[row, 1:], sums[row, :-1] + gains, out=best[1:])
            np.maximum.accumulate(best, out=best)
        # Lists are read faster, and take more memory.
        table = sums.tolist() if sums.size < MAX_LISTED else sums
        for end in ends:
            yield _pairs(table, evidence, start, end)

    def row_text(self, row: int) -> str:
        """A row without the space around it."""
        return self._rows[row].stripped

    def line_text(self, line: int) -> str:
        """A line without the space around it."""
        return self._original.stripped[line]

    def evidence_of(self, pairs: Sequence[tuple[int, int]]) -> float:
        """How much pairs of a row and a line tell together."""
        return float(sum(self.evidence[pair] for pair in pairs))

    def alike_lines(self, row: int, min_ratio: float, limit: int) -> list[int]:
        """Lines that are like a row, the most alike first."""
        order = np.argsort(-self.ratios[row], kind="stable")[:limit]
        return [int(line) for line in order if self.ratios[row, line] >= min_ratio]

    def run_length(self, row: int, line: int, step: int, min_ratio: float) -> int:
        """How many rows from `row` on are like the lines from `line` on; `step` -1 goes back."""
        length, least = 0, min(min_ratio, MIN_RATIO / 100)
        while 0 <= row < len(self._rows) and 0 <= line < len(self._original):
            if self.ratios[row, line] < least:
                break
            length, row, line, least = length + 1, row + step, line + step, min_ratio
        return length


def weight_of(text: str) -> float:
    """How much a line says: a bracket next to nothing, a whole statement 1."""
    num_letters = sum(map(str.isalnum, text[:64]))
    if not num_letters:
        return 0.12
    if num_letters <= 4:
        return 0.35
    return 0.7 if num_letters <= 9 else 1.0


def _pairs(
    sums: Sequence[Sequence[float]] | Floats, evidence: Floats, start: int, end: int
) -> list[tuple[int, int]]:
    """The way through the sums of an alignment, for one end."""
    pairs: list[tuple[int, int]] = []
    place = end - start
    for row in range(len(evidence), 0, -1):
        here, above = sums[row], sums[row - 1]
        while place and here[place] == here[place - 1]:
            place -= 1
        if not place:
            break
        if here[place] <= above[place] + 1e-6:
            continue
        gain = float(evidence[row - 1, place - 1])
        if gain > 0 and abs(here[place] - above[place - 1] - gain) < 1e-5:
            pairs.append((row - 1, start + place - 1))
            place -= 1
    return pairs[::-1]


def _equal(texts: Sequence[str], original: FilledLines) -> NDArray[np.bool_]:
    equal = np.zeros((len(texts), len(original)), bool)
    for row, text in enumerate(texts):
        equal[row, original.places.get(text, [])] = True
    return equal


def _ratios(texts: Sequence[str], lines: Sequence[str]) -> Floats:
    if not lines or not texts:
        return np.zeros((len(texts), len(lines)), np.float32)
    ratios: Floats = process.cdist(texts, lines, scorer=fuzz.ratio, score_cutoff=MIN_RATIO)
    shares = ratios / np.float32(100)
    grown = [row for row, text in enumerate(texts) if _may_have_grown(text, shares[row])]
    scorers = ((fuzz.token_set_ratio, SET_DISCOUNT), (fuzz.partial_ratio, PART_DISCOUNT))
    for scorer, discount in scorers if grown else ():
        parts: Floats = process.cdist(
            [texts[row] for row in grown], lines, scorer=scorer, score_cutoff=MIN_PART_RATIO
        )
        shares[grown] = np.maximum(shares[grown], parts / np.float32(100 * discount))
    return shares


def _see_ellipses(ratios: Floats, texts: Sequence[str], lines: Sequence[str]) -> None:
    """A row with "..." within is like each line that has its head and its tail."""
    for row, text in enumerate(texts):
        head, dots, tail = text.partition("...")
        if not dots or len(head) + len(tail) < MIN_LETTERS_OF_GROWN:
            continue
        for place, line in enumerate(lines):
            if line.startswith(head) and line.endswith(tail) and "..." not in line:
                ratios[row, place] = RATIO_OF_ELLIPSIS


def _may_have_grown(text: str, ratios: Floats) -> bool:
    """Whether a row is like no line as a whole, but may have all its words."""
    return sum(map(str.isalnum, text)) >= MIN_LETTERS_OF_GROWN and ratios.max() < MAX_RATIO_OF_GROWN
