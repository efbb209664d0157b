"""The same tasks as a load: edits a second and the time of one, at several open at once.

Figures of two systems may be compared if the split, the dialects, the machine of the system, the
machine of the caller and the number at once are the same, and nothing else ran. Tasks that a system
is not offered are left out. An edit counts whatever came of it: read the shares beside it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from lazy_edit_bench.judge import RIGHT, judge
from lazy_edit_bench.systems.system import System
from lazy_edit_bench.task import BenchError, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """What one load showed. `edits_per_s` counts answers, `right_per_s` those that were right."""

    system: str
    num_at_once: int
    num_tasks: int
    wall_s: float
    edits_per_s: float
    right_per_s: float
    seconds_p50: float
    seconds_p95: float
    num_failed: int


def measure(system: System, tasks: Sequence[Task], *, num_at_once: int) -> Speed:
    """Keep `num_at_once` tasks open until all are answered. Raises BenchError without a task."""
    offered = [task for task in tasks if task.dialect in system.dialects]
    if not offered:
        raise BenchError(f"{system.name} speaks no dialect of these tasks")
    started = time.perf_counter()
    with ThreadPoolExecutor(num_at_once) as threads:
        answers = list(threads.map(system.answer, offered))
    wall_s = time.perf_counter() - started
    seconds = sorted(answer.seconds for answer in answers)
    pairs = zip(offered, answers, strict=True)
    num_right = sum(judge(task, answer).outcome in RIGHT for task, answer in pairs)
    return Speed(
        system=system.name,
        num_at_once=num_at_once,
        num_tasks=len(offered),
        wall_s=round(wall_s, 3),
        edits_per_s=round(len(offered) / wall_s, 2),
        right_per_s=round(num_right / wall_s, 2),
        seconds_p50=seconds[len(seconds) // 2],
        seconds_p95=seconds[min(len(seconds) - 1, int(0.95 * len(seconds)))],
        num_failed=sum(answer.status == "failed" for answer in answers),
    )
