"""One stage of the load bench: one mode of speculation at one rate, in figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from benchmarks.load.open_loop import TimedReply

# What is taken for a rise of goodput; below it, doubling the rate has found the end.
_MIN_RISE = 1.05


class LoadStage(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of the requests of one stage.

    `goodput` is answers and verdicts within the deadline, a second of the stage; percentiles are of
    their seconds and those of late answers, and None without any.
    """

    mode: str
    rate: float
    sent: int
    answered: int
    rejected: int
    late: int
    busy: int
    failed: int
    goodput: float
    p50_s: float | None
    p90_s: float | None
    p99_s: float | None
    problems: dict[str, int]

    @classmethod
    def of(
        cls, mode: str, rate: float, replies: Sequence[TimedReply], *, seconds: float
    ) -> LoadStage:
        """The figures of a stage whose arrivals were spread over `seconds`."""
        endings = Counter(reply.ending for reply in replies)
        timed = sorted(
            reply.seconds for reply in replies if reply.ending in ("answered", "rejected", "late")
        )
        return cls(
            mode=mode,
            rate=rate,
            sent=len(replies),
            answered=endings["answered"],
            rejected=endings["rejected"],
            late=endings["late"],
            busy=endings["busy"],
            failed=endings["failed"],
            goodput=(endings["answered"] + endings["rejected"]) / seconds,
            p50_s=percentile(timed, 0.5),
            p90_s=percentile(timed, 0.9),
            p99_s=percentile(timed, 0.99),
            problems=dict(Counter(reply.problem for reply in replies if reply.problem is not None)),
        )


def percentile(ascending: Sequence[float], share: float) -> float | None:
    """The least value that at least this share of all do not exceed; None of nothing."""
    if not ascending:
        return None
    rank = -(-len(ascending) * share // 1)
    return ascending[max(int(rank), 1) - 1]


def is_rising(stages: Sequence[LoadStage]) -> bool:
    """True if the last rate brought any mode more goodput than all rates before it."""
    rates = sorted({stage.rate for stage in stages})
    if len(rates) < 2:
        return True
    for mode in {stage.mode for stage in stages}:
        of_mode = {stage.rate: stage.goodput for stage in stages if stage.mode == mode}
        before = max((of_mode[rate] for rate in rates[:-1] if rate in of_mode), default=0.0)
        if of_mode.get(rates[-1], 0.0) > _MIN_RISE * before:
            return True
    return False


def format_stages(stages: Sequence[LoadStage]) -> list[str]:
    """A table, one line a stage."""
    lines = [
        f"{'mode':<10}{'rate/s':>8}{'sent':>6}{'goodput/s':>11}{'p50 s':>8}{'p90 s':>8}"
        f"{'p99 s':>8}{'late':>6}{'429':>6}{'failed':>8}"
    ]
    for stage in sorted(stages, key=lambda stage: stage.rate):
        times = "".join(_format_s(value) for value in (stage.p50_s, stage.p90_s, stage.p99_s))
        lines.append(
            f"{stage.mode:<10}{stage.rate:>8g}{stage.sent:>6}{stage.goodput:>11.2f}{times}"
            f"{stage.late:>6}{stage.busy:>6}{stage.failed:>8}"
        )
    return lines


def best_goodput(stages: Sequence[LoadStage]) -> dict[str, dict[str, Any]]:
    """For each mode the stage with the most goodput, by rate and goodput."""
    best: dict[str, LoadStage] = {}
    for stage in stages:
        if stage.mode not in best or stage.goodput > best[stage.mode].goodput:
            best[stage.mode] = stage
    return {
        mode: {"rate": stage.rate, "goodput": stage.goodput, "p99_s": stage.p99_s}
        for mode, stage in best.items()
    }


def _format_s(seconds: float | None) -> str:
    return f"{'-':>8}" if seconds is None else f"{seconds:>8.2f}"
