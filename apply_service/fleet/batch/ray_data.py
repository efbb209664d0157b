"""Runs a batch on a Ray cluster: tasks read slices, a pool of actors does them.

Ray Data reads only as far ahead as actors take slices, starts actors again that die, and gives
them their slices again; `results` sees to it that each edit is answered once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import ray
import ray.data

from apply_service.config import Settings
from apply_service.fleet.batch.edit import Edit
from apply_service.fleet.batch.results import ResultFolder, part_name
from apply_service.fleet.batch.sources import Slice, read_slice
from apply_service.fleet.batch.worker import BatchWorker
from apply_service.fleet.host_program import prepare_host

# A reader waits for files more than it computes.
_READER_CPUS = 0.25
# One slice is done and the next one is at hand.
_SLICES_PER_WORKER = 2

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The actors: at least and at most so many, and what Ray reserves for each."""

    min_workers: int
    max_workers: int
    cpus: float
    gpus: float


def run_on_ray(
    slices: Iterable[Slice],
    folder: Path,
    settings: Settings,
    *,
    pool: Pool,
    report: Callable[[int, bool], None],
) -> list[str]:
    """Do what is not done yet on the cluster of RAY_ADDRESS, else on one of this machine.

    The parts in the order of the slices; `report` as for `run_here`. All nodes need the paths of
    the slices and the folder. Raises SourceError, or what Ray raises.
    """
    numbered = [
        {"number": number, "slice": msgspec.json.encode(one)} for number, one in enumerate(slices)
    ]
    if not numbered:
        return []
    ray.init(ignore_reinit_error=True, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    rows = (
        # A block for each slice, so that an actor has at most one in its hands.
        ray.data.from_items(numbered, override_num_blocks=len(numbered))
        .map(partial(_read, folder), num_cpus=_READER_CPUS)
        .map_batches(
            _Actor,
            fn_constructor_args=(settings, folder),
            batch_size=1,
            num_cpus=pool.cpus,
            num_gpus=pool.gpus or None,
            compute=ray.data.ActorPoolStrategy(
                min_size=pool.min_workers,
                max_size=pool.max_workers,
                max_tasks_in_flight_per_actor=_SLICES_PER_WORKER,
            ),
        )
    )
    parts: dict[int, str] = {}
    for row in rows.iter_rows():
        parts[row["number"]] = row["part"]
        report(row["num_edits"], row["is_done"])
    return [parts[number] for number in range(len(numbered))]


def _read(folder: Path, row: Row) -> Row:
    """Turn a slice into its edits, or into nothing where they are done."""
    edits = read_slice(msgspec.json.decode(row["slice"], type=Slice))
    part = part_name(edits)
    is_done = ResultFolder(folder).has(part)
    return {
        "number": row["number"],
        "part": part,
        "num_edits": len(edits),
        "is_done": is_done,
        "edits": b"" if is_done else msgspec.msgpack.encode(edits),
    }


class _Actor:
    """A worker that lives as long as its actor."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        prepare_host()
        self._worker = BatchWorker(settings)
        self._results = ResultFolder(folder)

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        for part, content in zip(batch["part"], batch["edits"], strict=True):
            # Another one may have done it and died before it could say so.
            if content and not self._results.has(part):
                edits = msgspec.msgpack.decode(content, type=list[Edit])
                self._results.write(part, self._worker.run(edits))
        return {name: batch[name] for name in ("number", "part", "num_edits", "is_done")}
