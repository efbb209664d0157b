"""How many replicas a load needs, from the measured costs of steps: arithmetic, no simulation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from batching.step_costs import CostRates, StepCosts, StepSize

# Rows of one step at most; longer prompts and larger steps are cut.
_MAX_STEP_ROWS = 512
# What Redis keeps beside the payload: keys, headers, its own tables.
_REDIS_OVERHEAD = 1.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is asked for; `cached_share` of prompt tokens are found in the replica's memory.

    An answer comes in passes of `tokens_per_pass`, each over `rows_per_pass` rows (the drafts and
    one). `text_ms` is processor time beside the engine. `num_files` are edited again and again, and
    `moved_share` of their edits come to another replica than the one before.
    """

    edits_per_s: float
    prompt_tokens: float
    answer_tokens: float
    cached_share: float = 0.0
    tokens_per_pass: float = 1.0
    rows_per_pass: float = 1.0
    text_ms: float = 0.0
    num_files: int = 0
    moved_share: float = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One replica's machine; on a CPU the engine takes the cores that text needs too."""

    name: str
    costs: StepCosts
    kv_bytes_per_token: int
    kv_memory_bytes: int
    num_cores: int
    is_cpu: bool
    max_running: int = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the load needs. One replica does `edits_per_s` at most, with `num_at_once` running.

    `latency_s` is that of an edit beside so many. Bytes are of all replicas together, rates of the
    whole fleet.
    """

    num_replicas: int
    edits_per_s: float
    num_at_once: int
    latency_s: float
    kv_bytes: float
    redis_bytes: float
    redis_bytes_per_s: float


@dataclass(frozen=True, slots=True)
class _Rate:
    edits_per_s: float
    latency_s: float
    num_at_once: int


class TooLargeError(Exception):
    """An edit does not fit the machine."""


def plan_of(load: Load, machine: Machine, *, utilisation: float = 0.7) -> Plan:
    """The fewest replicas that are busy for no more than `utilisation` of the time.

    Raises TooLargeError if the KV cache does not hold one edit.
    """
    best = best_rate(load, machine)
    num_replicas = max(1, math.ceil(load.edits_per_s / (best.edits_per_s * utilisation)))
    kv_of_prompt = load.prompt_tokens * machine.kv_bytes_per_token
    moved = load.moved_share + (1.0 - load.cached_share)
    return Plan(
        num_replicas=num_replicas,
        edits_per_s=best.edits_per_s,
        num_at_once=best.num_at_once,
        latency_s=best.latency_s,
        kv_bytes=load.num_files * kv_of_prompt
        + num_replicas * best.num_at_once * _kv_of_edit(load, machine),
        redis_bytes=load.num_files * kv_of_prompt * _REDIS_OVERHEAD,
        redis_bytes_per_s=min(1.0, moved) * load.edits_per_s * kv_of_prompt,
    )


def best_rate(load: Load, machine: Machine) -> _Rate:
    """The most edits a second of one replica, over how many run at once."""
    num_fitting = int(machine.kv_memory_bytes // max(1.0, _kv_of_edit(load, machine)))
    if not num_fitting:
        raise TooLargeError(
            f"an edit of {load.prompt_tokens + load.answer_tokens:.0f} tokens needs"
            f" {_kv_of_edit(load, machine):.0f} bytes of KV cache, the machine has"
            f" {machine.kv_memory_bytes}; give it more, or send less"
        )
    most = min(machine.max_running, num_fitting)
    counts = sorted({most, *(2**power for power in range(most.bit_length()) if 2**power <= most)})
    return max(
        (rate_at(load, machine, num_at_once=count) for count in counts),
        key=lambda rate: rate.edits_per_s,
    )


def rate_at(load: Load, machine: Machine, *, num_at_once: int) -> _Rate:
    """Edits a second and the seconds of one while so many run."""
    prefill_ms = _prefill_ms(load, machine.costs)
    num_passes = load.answer_tokens / load.tokens_per_pass
    pass_ms = _pass_ms(load, machine.costs, num_at_once) if num_passes else 0.0
    engine_ms = prefill_ms + num_passes * pass_ms / num_at_once
    text_ms = load.text_ms / min(machine.num_cores, num_at_once)
    # A CPU does one after the other; beside a GPU they go on at the same time.
    edit_ms = engine_ms + text_ms if machine.is_cpu else max(engine_ms, text_ms)
    waiting_ms = num_at_once * prefill_ms + num_passes * pass_ms + load.text_ms
    return _Rate(1e3 / max(edit_ms, 1e-6), waiting_ms / 1e3, num_at_once)


def dollars_per_million(plan: Plan, load: Load, dollars_per_hour: float) -> float:
    """What a million edits cost at this load, where a replica costs so much an hour."""
    return plan.num_replicas * dollars_per_hour / 3600.0 / load.edits_per_s * 1e6


def _kv_of_edit(load: Load, machine: Machine) -> float:
    return (load.prompt_tokens + load.answer_tokens) * machine.kv_bytes_per_token


def _prefill_ms(load: Load, costs: StepCosts) -> float:
    num_rows = load.prompt_tokens * (1.0 - load.cached_share)
    return _steps_ms(costs, num_rows, num_plain_rows=num_rows, context=load.prompt_tokens / 2)


def _pass_ms(load: Load, costs: StepCosts, num_requests: int) -> float:
    """Milliseconds of a pass over the drafts of all requests."""
    return _steps_ms(
        costs,
        num_requests * load.rows_per_pass,
        context=load.prompt_tokens + load.answer_tokens / 2,
        num_requests=num_requests,
    )


def _steps_ms(
    costs: StepCosts,
    num_rows: float,
    *,
    context: float,
    num_plain_rows: float = 0.0,
    num_requests: int = 1,
) -> float:
    """Milliseconds of rows in as many steps as they take, each with its share of all."""
    if num_rows <= 0.0:
        return 0.0
    num_steps = math.ceil(num_rows / _MAX_STEP_ROWS)
    rows = num_rows / num_steps
    size = StepSize(
        num_rows=max(1, round(rows)),
        num_plain_rows=round(num_plain_rows / num_steps),
        num_pairs=round(rows * context),
        num_requests=max(1, round(num_requests / num_steps)),
    )
    return num_steps * costs.step_ms(size)


# Steps of 7B (Qwen2.5's shape) in bfloat16 on an H100, milliseconds by rows, context 2,048:
# docs/benchmarks.md, "Steps of real sizes"; 1.5B likewise, without steps that were not captured.
_H100_MS: Mapping[str, Mapping[int, float]] = {
    "7b": {1: 7.0, 17: 7.1, 32: 8.9, 65: 7.5, 136: 9.5, 2080: 58.0, 8320: 215.7},
    "1.5b": {1: 3.5, 17: 3.7, 32: 4.6, 65: 3.7, 136: 4.7, 2080: 29.7, 8320: 62.4},
}
_KV_BYTES_PER_TOKEN = {"7b": 57_344, "1.5b": 28_672}
_WEIGHT_BYTES = {"7b": 15.2e9, "1.5b": 3.1e9}
_H100_BYTES = 80e9
MODEL_SIZES = tuple(_H100_MS)


def h100(size: str, *, num_cores: int) -> Machine:
    """A measured GPU with a model of one of MODEL_SIZES."""
    return Machine(
        name=f"NVIDIA H100, {size}",
        costs=StepCosts(_H100_MS[size], rates=CostRates(), row_counts=tuple(_H100_MS[size])),
        kv_bytes_per_token=_KV_BYTES_PER_TOKEN[size],
        kv_memory_bytes=int(0.9 * (_H100_BYTES - _WEIGHT_BYTES[size])),
        num_cores=num_cores,
        is_cpu=False,
    )
