"""Runs a batch in this process, slice by slice."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from apply_service.config import Settings
from apply_service.fleet.batch.results import ResultFolder, part_name
from apply_service.fleet.batch.sources import Slice, read_slice
from apply_service.fleet.batch.worker import BatchWorker


def run_here(
    slices: Iterable[Slice],
    results: ResultFolder,
    settings: Settings,
    *,
    report: Callable[[int, bool], None],
) -> list[str]:
    """Do what is not done yet; the parts in the order of the slices.

    `report` is told of each slice how many edits it has, and whether they were done before. Raises
    SourceError, ModelStoreError or PromptError.
    """
    worker: BatchWorker | None = None
    parts = []
    try:
        for one in slices:
            edits = read_slice(one)
            part = part_name(edits)
            is_done = results.has(part)
            if not is_done:
                worker = worker or BatchWorker(settings)
                results.write(part, worker.run(edits))
            parts.append(part)
            report(len(edits), is_done)
    finally:
        if worker is not None:
            worker.close()
    return parts
