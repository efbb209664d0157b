"""Replays a drafter against an oracle that writes the expected answer, and counts its passes."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lookup.proposer import Proposer


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayFigures:
    """Figures of one drafter on one answer of `num_tokens` tokens, end tokens included.

    shares: for each draft that was as long as may be, in turn, how much of it held
    """

    num_tokens: int
    num_passes: int
    drafted: int
    accepted: int
    build_s: float
    propose_s: float
    shares: tuple[float, ...]

    @property
    def tokens_per_pass(self) -> float:
        """Answer tokens per decode pass."""
        return self.num_tokens / self.num_passes


def replay(proposer: Proposer, answer: Sequence[int], *, max_draft_tokens: int) -> ReplayFigures:
    """Let `proposer` draft a whole answer that is not empty.

    Every pass yields the agreeing draft tokens and one more, as verification does, up to the end of
    the answer. Times are CPU seconds of this thread; `propose_s` holds
    propose and commit together.
    """
    started = time.thread_time()
    for _ in proposer.build() or ():
        pass
    build_s = time.thread_time() - started
    num_done = num_passes = drafted = accepted = 0
    propose_s = 0.0
    shares: list[float] = []
    while num_done < len(answer):
        started = time.thread_time()
        token_ids = proposer.propose(max_draft_tokens).token_ids
        propose_s += time.thread_time() - started
        num_agreed = _num_agreed(token_ids, answer[num_done : num_done + len(token_ids)])
        written = answer[num_done : num_done + num_agreed + 1]
        started = time.thread_time()
        proposer.commit(written)
        propose_s += time.thread_time() - started
        num_done += len(written)
        num_passes += 1
        drafted += len(token_ids)
        accepted += num_agreed
        if len(token_ids) == max_draft_tokens:
            shares.append(num_agreed / max_draft_tokens)
    return ReplayFigures(
        num_tokens=len(answer),
        num_passes=num_passes,
        drafted=drafted,
        accepted=accepted,
        build_s=build_s,
        propose_s=propose_s,
        shares=tuple(shares),
    )


def summarise_replay(figures: Sequence[ReplayFigures]) -> dict[str, Any]:
    """The figures of one drafter over at least one case.

    Mean and p10 (nearest rank) of tokens per pass are over cases, each weighing the same; "pooled"
    is all tokens over all passes. The other figures are pooled too.
    """
    num_passes = sum(figure.num_passes for figure in figures)
    num_tokens = sum(figure.num_tokens for figure in figures)
    drafted = sum(figure.drafted for figure in figures)
    return {
        "tokens_per_target_pass": {
            **_mean_and_p10([figure.tokens_per_pass for figure in figures]),
            "pooled": num_tokens / num_passes,
        },
        "acceptance": sum(figure.accepted for figure in figures) / max(1, drafted),
        "drafted_per_pass": drafted / num_passes,
        "propose_us": 1e6 * math.fsum(figure.propose_s for figure in figures) / num_passes,
        "build_us_per_token": 1e6 * math.fsum(figure.build_s for figure in figures) / num_tokens,
    }


def ceiling(num_tokens: Sequence[int], *, max_draft_tokens: int) -> dict[str, float]:
    """Tokens per pass of a drafter that is always right, for answers of these lengths.

    Mean and p10 over cases, and pooled. Short answers pull them below `max_draft_tokens + 1`: their
    last pass is rarely full.
    """
    num_passes = [math.ceil(count / (max_draft_tokens + 1)) for count in num_tokens]
    return {
        **_mean_and_p10([count / n for count, n in zip(num_tokens, num_passes, strict=True)]),
        "pooled": sum(num_tokens) / sum(num_passes),
    }


def _mean_and_p10(values: Sequence[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {
        "mean": math.fsum(ordered) / len(ordered),
        "p10": ordered[math.ceil(len(ordered) / 10) - 1],
    }


def _num_agreed(drafted: Sequence[int], expected: Sequence[int]) -> int:
    """Number of leading draft tokens that the oracle confirms."""
    num_agreed = 0
    for token, other in zip(drafted, expected, strict=False):
        if token != other:
            break
        num_agreed += 1
    return num_agreed
