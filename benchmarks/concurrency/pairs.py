"""One pair of the concurrency bench: the same batch without drafts and with the draft budget."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import count
from typing import Any

import msgspec

from apply_service.evaluate.case_statistics import bootstrap_lower_bound, geometric_mean
from benchmarks.concurrency.batch_engine import BatchEngine, EngineBatchRun
from benchmarks.concurrency.tasks import Task


class BatchFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What one batch took; `seconds` from the first submission to the last token."""

    seconds: float
    answer_tokens: int
    steps: int
    drafted: int
    accepted: int

    @classmethod
    def of(cls, run: EngineBatchRun) -> BatchFigures:
        """The figures of a run."""
        return cls(
            seconds=run.seconds,
            answer_tokens=run.stats.num_output_tokens,
            steps=run.num_steps,
            drafted=run.stats.drafted,
            accepted=run.stats.accepted,
        )

    @property
    def tokens_per_s(self) -> float:
        """Answer tokens a second of the whole batch."""
        return self.answer_tokens / self.seconds


class ConcurrencyPair(msgspec.Struct, frozen=True, kw_only=True):
    """Two batches of the same requests; `same_answers` of `answers` had the same tokens in both."""

    workload: str
    concurrency: int
    number: int
    first: str
    off: BatchFigures
    budgeted: BatchFigures
    answers: int
    same_answers: int

    @property
    def ratio(self) -> float:
        """Throughput with the draft budget over that without drafts."""
        return self.budgeted.tokens_per_s / self.off.tokens_per_s


class PairRunner:
    """Runs pairs on one engine; no two batches share anything that was computed."""

    def __init__(
        self, engine: BatchEngine, *, max_tokens: int, max_draft_tokens: int, min_requests: int = 1
    ) -> None:
        """A batch has as many requests as run at once, or `min_requests` if these are more."""
        self._engine = engine
        self._min_requests = min_requests
        self._max_tokens = max_tokens
        self._max_draft_tokens = max_draft_tokens
        self._batch_numbers = count()

    def run(
        self, workload: str, tasks: Sequence[Task], *, concurrency: int, number: int
    ) -> ConcurrencyPair:
        """Both batches, in an order that alternates with `number`, which also seeds the draws."""
        sides = {"off": 0, "budgeted": self._max_draft_tokens}
        order = list(sides) if number % 2 == 0 else list(sides)[::-1]
        runs = {
            side: self._run_batch(
                tasks, concurrency=concurrency, number=number, max_draft_tokens=sides[side]
            )
            for side in order
        }
        off, budgeted = runs["off"], runs["budgeted"]
        return ConcurrencyPair(
            workload=workload,
            concurrency=concurrency,
            number=number,
            first=order[0],
            off=BatchFigures.of(off),
            budgeted=BatchFigures.of(budgeted),
            answers=len(off.token_ids),
            same_answers=sum(map(tuple.__eq__, off.token_ids, budgeted.token_ids)),
        )

    def _run_batch(
        self, tasks: Sequence[Task], *, concurrency: int, number: int, max_draft_tokens: int
    ) -> EngineBatchRun:
        batch = next(self._batch_numbers)
        num_requests = max(concurrency, self._min_requests)
        first = num_requests * number
        return self._engine.run(
            [
                partial(
                    tasks[place % len(tasks)].request,
                    f"batch-{batch}-{place}",
                    max_tokens=self._max_tokens,
                    seed=place,
                    max_draft_tokens=max_draft_tokens,
                )
                for place in range(first, first + num_requests)
            ],
            at_once=concurrency,
        )


def summarise_pairs(pairs: Sequence[ConcurrencyPair]) -> list[dict[str, Any]]:
    """One entry for each workload and concurrency, in the order of their first pairs."""
    groups: dict[tuple[str, int], list[ConcurrencyPair]] = {}
    for pair in pairs:
        groups.setdefault((pair.workload, pair.concurrency), []).append(pair)
    return [_summarise(*key, group) for key, group in groups.items()]


def _summarise(workload: str, concurrency: int, pairs: Sequence[ConcurrencyPair]) -> dict[str, Any]:
    ratios = [pair.ratio for pair in pairs]
    drafted = sum(pair.budgeted.drafted for pair in pairs)
    return {
        "workload": workload,
        "concurrency": concurrency,
        "pairs": len(pairs),
        "ratio": geometric_mean(ratios),
        "ratio_lower_bound": bootstrap_lower_bound(ratios),
        "least_ratio": min(ratios),
        "tokens_per_s": {
            side: _tokens_per_s([getattr(pair, side) for pair in pairs])
            for side in ("off", "budgeted")
        },
        "steps": {
            side: sum(getattr(pair, side).steps for pair in pairs) for side in ("off", "budgeted")
        },
        "drafted": drafted,
        "accepted": sum(pair.budgeted.accepted for pair in pairs),
        "acceptance": (
            sum(pair.budgeted.accepted for pair in pairs) / drafted if drafted else None
        ),
        "same_answers": sum(pair.same_answers for pair in pairs),
        "answers": sum(pair.answers for pair in pairs),
    }


def _tokens_per_s(batches: Sequence[BatchFigures]) -> float:
    return sum(batch.answer_tokens for batch in batches) / sum(batch.seconds for batch in batches)
