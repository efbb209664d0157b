"""Predicts the time of a step by its rows: a table, measured once, corrected by every step."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from batching.step_plan import StepPlan

# Numbers of rows at which the cost is known; between them it is taken to be straight.
ROW_COUNTS = (1, 2, 4, 8, 12, 17, 24, 33, 49, 65, 81, 97, 129, 161, 193, 257, 385, 513, 1025)

# How much of its error one step corrects: where it was, and in the table as a whole.
_NEAR_GAIN = 0.1
_FAR_GAIN = 0.05
# Beside other processes a step may take any time; beyond this factor it says nothing more.
_MAX_ERROR = 2.5


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSize:
    """The size of a step, on which its cost depends.

    num_rows: rows of the forward pass; num_plain_rows of them need no logits.
    num_pairs: positions that the rows attend to, added up. Branches of drafts count as requests.
    """

    num_rows: int
    num_plain_rows: int
    num_pairs: int
    num_requests: int

    @classmethod
    def of(cls, plan: StepPlan) -> StepSize:
        """The size of a plan."""
        num_rows = plan.num_tokens
        num_asked = sum(entry.num_logits_rows for entry in plan.entries)
        return cls(
            num_rows=num_rows,
            num_plain_rows=num_rows - num_asked,
            num_pairs=sum(e.num_rows * (e.start + e.num_rows) for e in plan.entries),
            num_requests=len(plan.entries),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRates:
    """Milliseconds to add to the cost of a step's rows; below 0 for rows without logits."""

    plain_row_ms: float = 0.0
    pair_ms: float = 0.0
    request_ms: float = 0.0


class StepCosts:
    """Milliseconds of steps. Owned by the engine thread.

    The table holds for one request with logits for all its rows and no context; `rates` adds the
    rest. Row counts that were not measured lie on the line through their neighbours.
    """

    def __init__(
        self,
        measured_ms: Mapping[int, float],
        *,
        rates: CostRates,
        row_counts: Sequence[int] = ROW_COUNTS,
    ) -> None:
        """Take measured milliseconds by row count, one entry at least."""
        self._measured = dict(sorted(measured_ms.items()))
        self._row_counts = tuple(sorted({*row_counts, *self._measured}))
        self._rates = rates
        self._table = self._fill()

    @property
    def row_counts(self) -> tuple[int, ...]:
        """The row counts of the table, ascending."""
        return self._row_counts

    @property
    def measured_ms(self) -> dict[int, float]:
        """Milliseconds of the table by row count, from measurements and steps."""
        return dict(self._measured)

    @property
    def rates(self) -> CostRates:
        """The rates that are added to the table."""
        return self._rates

    def step_ms(self, size: StepSize) -> float:
        """Milliseconds that a step of this size is expected to take, more than none."""
        rates = self._rates
        rest = (
            rates.pair_ms * size.num_pairs
            + rates.request_ms * (size.num_requests - 1)
            - rates.plain_row_ms * size.num_plain_rows
        )
        # However many rows go without logits, a step is not for free.
        return max(self._rows_ms(size.num_rows) + rest, self._table[0] / 2)

    def observe(self, size: StepSize, milliseconds: float) -> None:
        """Correct the table by a step that was computed."""
        error = milliseconds / self.step_ms(size)
        error = min(max(error, 1 / _MAX_ERROR), _MAX_ERROR) - 1.0
        below = self._segment(size.num_rows)
        weight = min(1.0, self._fraction(below, size.num_rows))
        for count in self._measured:
            self._measured[count] *= 1.0 + _FAR_GAIN * error
        for at, share in ((below, 1.0 - weight), (below + 1, weight)):
            if share > 0.0:
                count = self._row_counts[at]
                # A row count that is learned from steps starts on the line it lies on.
                known = self._measured.setdefault(count, self._table[at])
                self._measured[count] = known * (1.0 + _NEAR_GAIN * share * error)
        self._table = self._fill()

    def _rows_ms(self, num_rows: int) -> float:
        below = self._segment(num_rows)
        low, high = self._table[below : below + 2]
        return low + self._fraction(below, num_rows) * (high - low)

    def _segment(self, num_rows: int) -> int:
        """The last row count that is not above `num_rows` and has another one behind it."""
        return min(max(bisect_right(self._row_counts, num_rows) - 1, 0), len(self._row_counts) - 2)

    def _fraction(self, below: int, num_rows: int) -> float:
        """How far `num_rows` lies into a segment; more than 1 behind the last one."""
        low, high = self._row_counts[below : below + 2]
        return max(0.0, (num_rows - low) / (high - low))

    def _fill(self) -> list[float]:
        """Milliseconds at each row count; unknown ends go on as steeply as rows cost on average."""
        counts, known = list(self._measured), self._measured
        counts.sort()
        first, last = counts[0], counts[-1]
        # From one row alone: weights are read once for all rows, so further ones cost little.
        slope = known[last] / 64 if first == last else 0.0
        if first != last:
            before = counts[-2]
            slope = max((known[last] - known[before]) / (last - before), known[last] / last / 2)
        table = []
        for count in self._row_counts:
            after = bisect_right(counts, count)
            low = counts[max(after - 1, 0)]
            if count <= first:
                table.append(known[first])
            elif after == len(counts):
                table.append(known[low] + slope * (count - low))
            else:
                high = counts[after]
                share = (count - low) / (high - low)
                table.append(known[low] + share * (known[high] - known[low]))
        return table
