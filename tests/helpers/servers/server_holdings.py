"""The resources that a server process holds: threads, files, children, memory, KV cache blocks."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import httpx

WAIT_S = 30.0
# Threads for blocking work are started as they are needed, up to this many.
MAX_POOL_THREADS = min(32, (os.cpu_count() or 1) + 4)


@dataclass(frozen=True)
class Holdings:
    """The resources of a process: threads, open files and children."""

    num_threads: int
    num_files: int
    num_children: int


class Server:
    """A server process as its system and its metrics see it."""

    def __init__(self, url: str, process_id: int) -> None:
        self.url = url
        self._folder = Path("/proc") / str(process_id)

    def holdings(self) -> Holdings:
        return Holdings(
            num_threads=len(list((self._folder / "task").iterdir())),
            num_files=len(list((self._folder / "fd").iterdir())),
            num_children=len(self.children()),
        )

    def children(self) -> list[int]:
        """The ids of all running processes that it has started, and of theirs."""
        return _children_of(self._folder)

    def engine_id(self) -> int | None:
        """The engine's process; None while there is none."""
        for child in self.children():
            with suppress(FileNotFoundError, ProcessLookupError):
                if b"engine_main" in (self._folder.parent / str(child) / "cmdline").read_bytes():
                    return child
        return None

    def memory_bytes(self) -> int:
        """The resident memory of server and engine, without that of other children."""
        engine = self.engine_id()
        of_engine = 0 if engine is None else _memory_of(self._folder.parent / str(engine))
        return _memory_of(self._folder) + of_engine

    def children_bytes(self) -> int:
        """The resident memory of its children; pages that they share count for each."""
        return sum(_memory_of(self._folder.parent / str(child)) for child in self.children())

    def blocks_in_use(self) -> float:
        """The share of the KV cache that requests hold."""
        lines = httpx.get(f"{self.url}/metrics", timeout=WAIT_S).text.splitlines()
        values = [line for line in lines if line.startswith("apply_kv_cache_usage_perc")]
        return float(values[0].split()[-1])


def _memory_of(folder: Path) -> int:
    """The resident memory of a process; 0 for one that has ended."""
    try:
        pages = (folder / "statm").read_text().split()[1]
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _children_of(folder: Path) -> list[int]:
    tasks = (folder / "task").iterdir()
    ids = [int(one) for task in tasks for one in (task / "children").read_text().split()]
    with suppress(FileNotFoundError):
        return ids + [one for child in ids for one in _children_of(folder.parent / str(child))]
    return ids


def is_running(process_id: int) -> bool:
    """True if the process exists and has not ended; a zombie has ended."""
    try:
        return ") Z " not in (Path("/proc") / str(process_id) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(is_so: Callable[[], bool], what: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < deadline, what()
        time.sleep(0.05)


def check_as_before(server: Server, before: Holdings) -> None:
    """Check that nothing more is held than before, once all clients have left."""

    def is_as_before() -> bool:
        now = server.holdings()
        return (
            now.num_files <= before.num_files
            and now.num_children == before.num_children
            and now.num_threads <= before.num_threads + MAX_POOL_THREADS
            and server.blocks_in_use() == 0.0
        )

    wait_until(is_as_before, lambda: (before, server.holdings(), server.blocks_in_use()))


def slope_of(values: Sequence[int]) -> float:
    """The growth of a value from one sample to the next, by least squares."""
    return statistics.linear_regression(range(len(values)), values).slope
