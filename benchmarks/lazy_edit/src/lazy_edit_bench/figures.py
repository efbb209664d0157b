"""Shares with their intervals, and differences between two systems on the same tasks."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from lazy_edit_bench.judge import RIGHT, Judgement
from lazy_edit_bench.result_file import Row

Z_95 = 1.959964
NUM_RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Share:
    """`count` of `total`, with the 95 % Wilson interval."""

    count: int
    total: int

    @property
    def value(self) -> float:
        """The share, 0 of nothing."""
        return self.count / self.total if self.total else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Where the true share lies with 95 % confidence."""
        if not self.total:
            return 0.0, 1.0
        spread = Z_95**2 / self.total
        centre = (self.value + spread / 2) / (1 + spread)
        half = (
            Z_95
            * math.sqrt(self.value * (1 - self.value) / self.total + spread / (4 * self.total))
            / (1 + spread)
        )
        return max(0.0, centre - half), min(1.0, centre + half)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{100 * self.value:.1f} % ({100 * low:.1f}–{100 * high:.1f})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The figures of one system over some tasks; shares are of the tasks it was offered."""

    num_tasks: int
    num_offered: int
    right: Share
    silent_harmful: Share
    silent_harmless: Share
    asked_rightly: Share  # of the tasks that must be asked about
    asked_needlessly: Share  # of the other tasks
    refused_rightly: Share  # of the tasks that must be refused
    refused_needlessly: Share  # of the other tasks
    after_question: Share
    failed: Share
    bytes_outside: int
    final_newline_lost: int
    encoding_lost: int
    seconds_p50: float
    seconds_p90: float
    tokens_in: int
    tokens_out: int

    def cost(self, price_in: float, price_out: float) -> float:
        """Price of all tasks; prices are for a million tokens."""
        return (self.tokens_in * price_in + self.tokens_out * price_out) / 1e6


def summarise(rows: Iterable[Row]) -> Summary:
    """The figures of these rows."""
    every = list(rows)
    offered = [row for row in every if row.judgement.outcome != "not_offered"]
    seconds = sorted(row.answer.seconds for row in offered)
    must_ask = [row for row in offered if row.treat == "ask"]
    must_refuse = [row for row in offered if row.treat == "refuse"]

    def share(test: Callable[[Judgement], bool], among: Sequence[Row] = offered) -> Share:
        return Share(sum(test(row.judgement) for row in among), len(among))

    return Summary(
        num_tasks=len(every),
        num_offered=len(offered),
        right=share(is_right),
        silent_harmful=share(lambda one: one.outcome == "silent_harmful"),
        silent_harmless=share(lambda one: one.outcome == "silent_harmless"),
        asked_rightly=share(lambda one: one.outcome == "asked_rightly", must_ask),
        asked_needlessly=share(
            lambda one: one.outcome == "asked_needlessly",
            [row for row in offered if row.treat != "ask"],
        ),
        refused_rightly=share(lambda one: one.outcome == "refused_rightly", must_refuse),
        refused_needlessly=share(
            lambda one: one.outcome == "refused_needlessly",
            [row for row in offered if row.treat != "refuse"],
        ),
        after_question=share(lambda one: one.after_question),
        failed=share(lambda one: one.outcome == "failed"),
        bytes_outside=sum(row.judgement.bytes_outside for row in offered),
        final_newline_lost=sum(not row.judgement.final_newline_kept for row in offered),
        encoding_lost=sum(not row.judgement.encoding_kept for row in offered),
        seconds_p50=_quantile(seconds, 0.5),
        seconds_p90=_quantile(seconds, 0.9),
        tokens_in=sum(row.answer.tokens_in for row in offered),
        tokens_out=sum(row.answer.tokens_out for row in offered),
    )


def is_right(judgement: Judgement) -> bool:
    """Whether the task was treated as it had to be."""
    return judgement.outcome in RIGHT


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Share of right tasks of one system less that of another, on the tasks both were offered."""

    num_tasks: int
    points: float
    low: float
    high: float
    one_alone: int
    other_alone: int
    p_value: float

    def num_tasks_needed(self, points: float = 1.0, power: float = 0.8) -> int:
        """Tasks at which a difference of `points` is seen with this power, at 5 % two-sided.

        The share of tasks on which the two systems differ is taken from what was measured.
        """
        gap = points / 100
        discordant = max((self.one_alone + self.other_alone) / max(1, self.num_tasks), gap)
        z_power = NormalDist().inv_cdf(power)
        spread = Z_95 * math.sqrt(discordant) + z_power * math.sqrt(discordant - gap**2)
        return math.ceil((spread / gap) ** 2)


def compare(one: Sequence[Row], other: Sequence[Row], *, seed: int = 0) -> Difference:
    """Paired bootstrap of the difference, and McNemar's exact test."""
    right_by_id = {row.id: row for row in other}
    pairs = [
        (is_right(row.judgement), is_right(right_by_id[row.id].judgement))
        for row in one
        if row.id in right_by_id
        and "not_offered" not in (row.judgement.outcome, right_by_id[row.id].judgement.outcome)
    ]
    gaps = [int(a) - int(b) for a, b in pairs]
    rng = random.Random(seed)
    means = sorted(
        100 * sum(rng.choices(gaps, k=len(gaps))) / len(gaps) if gaps else 0.0
        for _ in range(NUM_RESAMPLES)
    )
    one_alone, other_alone = gaps.count(1), gaps.count(-1)
    return Difference(
        num_tasks=len(gaps),
        points=100 * sum(gaps) / len(gaps) if gaps else 0.0,
        low=_quantile(means, 0.025),
        high=_quantile(means, 0.975),
        one_alone=one_alone,
        other_alone=other_alone,
        p_value=_sign_test(one_alone, other_alone),
    )


def _sign_test(wins: int, losses: int) -> float:
    total, fewer = wins + losses, min(wins, losses)
    tail = sum(math.comb(total, count) for count in range(fewer + 1)) / 2**total
    return float(min(1.0, 2 * tail))


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0
