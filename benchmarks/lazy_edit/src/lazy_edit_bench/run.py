"""Puts every task of a split to a system."""

from __future__ import annotations

import datetime
import os
import platform
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from lazy_edit_bench.judge import Answer
from lazy_edit_bench.result_file import Result, Row, hash_of, judged
from lazy_edit_bench.systems.system import System
from lazy_edit_bench.task import Task


def run_tasks(system: System, tasks: Sequence[Task], *, split: str, num_at_once: int = 1) -> Result:
    """The answers in the order of the tasks."""
    with ThreadPoolExecutor(num_at_once) as threads:
        rows = []
        for number, row in enumerate(threads.map(lambda task: _row(system, task), tasks), start=1):
            rows.append(row)
            if number % 100 == 0:
                print(f"{system.name}: {number} of {len(tasks)}", file=sys.stderr)
    return Result(
        system=system.name,
        version=system.version,
        command=system.command,
        split=split,
        tasks_hash=hash_of(tasks),
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        machine=f"{_processor()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        rows=tuple(rows),
    )


def _row(system: System, task: Task) -> Row:
    if task.dialect not in system.dialects:
        return judged(task, Answer(status="not_offered"))
    return judged(task, system.answer(task))


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            named = [line.partition(":")[2].strip() for line in lines if "model name" in line]
    except OSError:
        named = []
    return named[0] if named else platform.processor() or platform.machine()
