"""Adds up what contenders did with the same tasks, each beside no drafts."""

from __future__ import annotations

import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from batching.answer_counters import START_TOKENS
from benchmarks.speculators.contenders import LLAMA, OFF, TRANSFORMERS, Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One contender on tasks of one kind.

    ratio: seconds without drafts over its own, both of all tasks
    tokens_per_pass: output tokens over decode passes; None where nobody counts them
    gaps_ms: p50, p95 and p99 of the time between tokens; those of one pass come together
    num_equal: answers that are token for token those without drafts
    """

    name: str
    ratio: float
    low: float
    high: float
    tokens_per_pass: float | None
    acceptance: float | None
    gaps_ms: tuple[float, float, float] | None
    num_equal: int
    num_answers: int


def figures_of(answers: Mapping[str, Sequence[Answer]]) -> list[Figures]:
    """The figures of all contenders, which have answered the same tasks in the same order."""
    return [_figures(name, own, answers) for name, own in answers.items() if own]


def _figures(name: str, own: Sequence[Answer], answers: Mapping[str, Sequence[Answer]]) -> Figures:
    # Another engine's prompt lookup is compared with that engine.
    base = answers[next((rival for rival in (TRANSFORMERS, LLAMA) if rival in name), OFF)]
    pairs = [(one.seconds, other.seconds) for one, other in zip(own, base, strict=True)]
    low, high = _bootstrap(pairs)
    stats = [answer.stats for answer in own if answer.stats is not None]
    passes = sum(one.decode_passes for one in stats)
    drafted = sum(one.drafted for one in stats)
    return Figures(
        name=name,
        ratio=_ratio(pairs),
        low=low,
        high=high,
        tokens_per_pass=sum(one.num_output_tokens for one in stats) / passes if passes else None,
        acceptance=sum(one.accepted for one in stats) / drafted if drafted else None,
        gaps_ms=_gaps(own),
        num_equal=sum(
            one.token_ids == other.token_ids for one, other in zip(own, base, strict=True)
        ),
        num_answers=len(own),
    )


def _ratio(pairs: Sequence[tuple[float, float]]) -> float:
    return sum(base for _, base in pairs) / sum(own for own, _ in pairs)


def _bootstrap(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The middle 95 % of the ratio, tasks drawn with replacement 2,000 times."""
    generator = random.Random(0)
    ratios = sorted(_ratio(generator.choices(pairs, k=len(pairs))) for _ in range(2000))
    return ratios[50], ratios[-51]


def _gaps(
    own: Sequence[Answer], *, start: int = 0, stop: int | None = None
) -> tuple[float, float, float] | None:
    """Of the tokens at these places of the answers; the first one of an answer has none."""
    gaps: list[float] = []
    for answer in own:
        of_answer: list[float] = []
        last = 0.0
        for now, count in answer.arrivals:
            of_answer += [1e3 * (now - last), *[0.0] * (count - 1)]
            last = now
        gaps += of_answer[max(1, start) : stop]
    if len(gaps) < 2:
        return None
    points = statistics.quantiles(gaps, n=100)
    return points[49], points[94], points[98]


def format_phases(
    answers: Mapping[str, Sequence[Answer]], judged: Mapping[str, Mapping[tuple[str, str], int]]
) -> str:
    """A Markdown table of the beginnings of answers and of what follows.

    judged: for each contender draft tokens by phase and "drafted" or "accepted"
    """
    lines = [
        f"| | first {START_TOKENS} tokens: acceptance; ms between tokens | the rest |",
        "|---|---|---|",
    ]
    for name, counts in judged.items():
        start = _gaps(answers[name], stop=START_TOKENS)
        rest = _gaps(answers[name], start=START_TOKENS)
        lines.append(
            f"| {name} | {_share(counts, 'start')}; {_points(start)}"
            f" | {_share(counts, 'rest')}; {_points(rest)} |"
        )
    return "\n".join(lines)


def _share(counts: Mapping[tuple[str, str], int], phase: str) -> str:
    drafted = counts.get((phase, "drafted"), 0)
    return _number(counts.get((phase, "accepted"), 0) / drafted if drafted else None)


def _points(gaps: tuple[float, float, float] | None) -> str:
    return "-" if gaps is None else ", ".join(f"{gap:.0f}" for gap in gaps)


def format_figures(title: str, figures: Sequence[Figures]) -> str:
    """A Markdown table."""
    lines = [
        f"**{title}**",
        "",
        "| | times off | 95 % | tokens a pass | acceptance | ms between tokens: p50, p95, p99"
        " | texts equal |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {one.name} | {one.ratio:.2f} | {one.low:.2f}-{one.high:.2f}"
        f" | {_number(one.tokens_per_pass)} | {_number(one.acceptance)}"
        f" | {_points(one.gaps_ms)}"
        f" | {one.num_equal} of {one.num_answers} |"
        for one in figures
    ]
    return "\n".join(lines)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
