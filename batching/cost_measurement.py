"""Measures what steps cost, in a bounded time, and keeps it for the next start."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from batching.machine_file import MachineFile, processor_name
from batching.request import SamplingParams
from batching.step_costs import CostRates, StepCosts, StepSize
from batching.step_plan import ScheduledRequest, StepPlan
from lookup.proposer import Draft

# Part of what a file is found by; to be raised whenever steps are computed in another way.
_COMPUTATION_VERSION = 5

# The ends of usual steps come first: a decode, a whole draft, then what lies between and beyond.
_WHOLE_DRAFT = 65
_OTHER_ROW_COUNTS = (17, 33, 129, 8, 257, 2, 49, 4, 97, 24, 193, 12, 513, 1025, 2049)
_CONTEXT = 1024
# As many as it takes for what each of them costs to stand out from the noise.
_NUM_REQUESTS = 32


class StepPlans:
    """Makes plans to be timed, over the first blocks of a cache that nobody uses yet."""

    def __init__(self, *, num_blocks: int, block_size: int, max_rows: int, max_context: int):
        self._block_size = block_size
        self._max_rows = max_rows
        self._max_tokens = min(num_blocks * block_size, max_context)

    def plan(self, num_rows: int, *, num_requests: int = 1, context: int = 0) -> StepPlan | None:
        """All rows with logits, behind `context` tokens; None if that does not fit."""
        num_each = num_rows // num_requests
        blocks_each = -(-(context + num_each) // self._block_size)
        num_tokens = blocks_each * num_requests * self._block_size
        if num_rows > self._max_rows or num_tokens > self._max_tokens:
            return None
        drafts = Draft((0,) * (num_each - 1), "", 0) if num_each > 1 else None
        return StepPlan(
            tuple(
                ScheduledRequest(
                    request_id=f"cost-{index}",
                    token_ids=(0,),
                    start=context,
                    block_ids=tuple(range(index * blocks_each, (index + 1) * blocks_each)),
                    draft=drafts,
                    has_logits=True,
                    output_position=0,
                    sampling=SamplingParams(max_tokens=num_rows + 1),
                )
                for index in range(num_requests)
            )
        )

    def prompt_plan(self, num_rows: int) -> StepPlan | None:
        """Rows of a prompt, without logits."""
        num_blocks = -(-num_rows // self._block_size)
        if num_rows > self._max_rows or num_blocks * self._block_size > self._max_tokens:
            return None
        scheduled = ScheduledRequest(
            request_id="cost",
            token_ids=(0,) * num_rows,
            start=0,
            block_ids=tuple(range(num_blocks)),
            draft=None,
            has_logits=False,
            output_position=-num_rows,
            sampling=SamplingParams(max_tokens=1),
        )
        return StepPlan((scheduled,))


def measure_step_costs(
    execute: Callable[[StepPlan], object],
    plans: StepPlans,
    *,
    budget_s: float,
    num_tries: int = 2,
) -> StepCosts:
    """Time steps until `budget_s` is nearly used up; that of one row comes anyway.

    Each is run `num_tries` times: the first time, memory is taken and code is chosen for a shape.
    What is left out is estimated until steps of that size have been computed.
    """
    clock = _StepClock(execute, budget_s=budget_s, num_tries=num_tries)
    rates = CostRates()
    measured: dict[int, float] = {}
    for num_rows in (1, _WHOLE_DRAFT, *_OTHER_ROW_COUNTS):
        expected = StepCosts(measured, rates=rates) if measured else None
        milliseconds = clock.try_time(plans.plan(num_rows), expected)
        if milliseconds is not None:
            measured[num_rows] = milliseconds
            if num_rows == _WHOLE_DRAFT:
                rates = _measure_rates(clock, plans, measured)
    return StepCosts(measured, rates=rates)


class _StepClock:
    """Times plans while there is time left for them."""

    def __init__(
        self, execute: Callable[[StepPlan], object], *, budget_s: float, num_tries: int
    ) -> None:
        self._execute = execute
        self._num_tries = num_tries
        self._deadline = time.perf_counter() + budget_s

    def try_time(self, plan: StepPlan | None, expected: StepCosts | None) -> float | None:
        """Milliseconds of a step, the best of all tries; None without a plan or the time for it."""
        if plan is None:
            return None
        left_ms = 1000.0 * (self._deadline - time.perf_counter())
        if expected is not None and self._num_tries * expected.step_ms(StepSize.of(plan)) > left_ms:
            return None
        return min(self._time(plan) for _ in range(self._num_tries))

    def _time(self, plan: StepPlan) -> float:
        started = time.perf_counter()
        self._execute(plan)
        return 1000.0 * (time.perf_counter() - started)


def _measure_rates(clock: _StepClock, plans: StepPlans, measured: Mapping[int, float]) -> CostRates:
    """What logits, context and further requests cost; nothing where that could not be tried."""
    costs = StepCosts(measured, rates=CostRates())
    whole_ms = measured[_WHOLE_DRAFT]
    plain_ms = clock.try_time(plans.prompt_plan(_WHOLE_DRAFT), costs)
    far_ms = clock.try_time(plans.plan(_WHOLE_DRAFT, context=_CONTEXT), costs)
    several_ms = clock.try_time(
        plans.plan(_WHOLE_DRAFT - _WHOLE_DRAFT % _NUM_REQUESTS, num_requests=_NUM_REQUESTS), costs
    )

    def more_by(milliseconds: float | None) -> float:
        return 0.0 if milliseconds is None else max(0.0, milliseconds - whole_ms)

    return CostRates(
        plain_row_ms=0.0 if plain_ms is None else max(0.0, whole_ms - plain_ms) / _WHOLE_DRAFT,
        pair_ms=more_by(far_ms) / (_WHOLE_DRAFT * _CONTEXT),
        request_ms=more_by(several_ms) / (_NUM_REQUESTS - 1),
    )


class StepCostFile:
    """Step costs in a folder, one file for each machine, model and way of computing."""

    def __init__(self, folder: Path, **identity: object) -> None:
        """`identity`: everything beside the machine that the costs depend on."""
        self._file = MachineFile(folder, version=_COMPUTATION_VERSION, **identity)

    def load(self) -> StepCosts | None:
        """The stored costs of this machine and model; None if missing or damaged."""
        return self._file.load(_read_costs)

    def store(self, costs: StepCosts) -> None:
        """Store the costs; a folder that cannot be written is only logged."""
        rates = costs.rates
        self._file.store(
            {
                "measured_ms": {str(count): ms for count, ms in costs.measured_ms.items()},
                "rates": {
                    "plain_row_ms": rates.plain_row_ms,
                    "pair_ms": rates.pair_ms,
                    "request_ms": rates.request_ms,
                },
            }
        )


@dataclass(frozen=True, slots=True)
class KeptCosts:
    """Costs that a server has kept, and what they were measured on."""

    identity: Mapping[str, Any]
    costs: StepCosts


def read_newest_costs(folder: Path) -> KeptCosts | None:
    """What was measured last by this version on this machine's processor; None if nothing was."""
    newest: tuple[float, KeptCosts] | None = None
    for path in folder.glob("*.json"):
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            identity = stored["identity"]
            kept = KeptCosts(identity, _read_costs(stored))
            changed_at = path.stat().st_mtime
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            continue
        is_own = identity.get("processor") == processor_name()
        is_own = is_own and identity.get("version") == str(_COMPUTATION_VERSION)
        if is_own and (newest is None or changed_at > newest[0]):
            newest = changed_at, kept
    return None if newest is None else newest[1]


def _read_costs(stored: Mapping[str, Any]) -> StepCosts:
    measured = {int(count): float(ms) for count, ms in stored["measured_ms"].items()}
    rates = CostRates(**{name: float(ms) for name, ms in stored["rates"].items()})
    if not measured or not all(count > 0 and 0.0 < ms < 1e9 for count, ms in measured.items()):
        raise ValueError("a cost is missing or out of range")
    return StepCosts(measured, rates=rates)
