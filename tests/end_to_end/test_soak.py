"""A server that has been used for long holds no more than one that has just been warmed up."""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from serve_process import serve_process
from traffic import MIXED, Tally, run_clients

NUM_CLIENTS = 16
WAIT_S = 30.0
# Threads for blocking work are started as they are needed, up to this many.
MAX_POOL_THREADS = min(32, (os.cpu_count() or 1) + 4)
# Less than one small file a request; the caches are too small to grow for long.
MAX_SLOPE_BYTES = 4 << 10
SETTINGS = (
    *("--port", "0", "--profile", "embedded"),
    *("--requests-per-minute", "0", "--tokens-per-minute", "0", "--max-concurrent", "0"),
    *(
        "--compat-review",
        "accept",
        "--deadline-s",
        "110",
        "--kv-memory",
        "16MiB",
        "--cache-memory",
        "1MiB",
    ),
)
GOOD_ENDINGS = {
    *("200", "200 result", "left", "429 queue-full", "503 overloaded"),
    *("400 unknown-field", "400 empty-update"),
}


@dataclass(frozen=True)
class Holdings:
    """What a process holds: threads, open files and children."""

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
        """The ids of all processes that it has started and that are there, and of theirs."""
        return _children_of(self._folder)

    def memory_bytes(self) -> int:
        """Its resident memory."""
        pages = (self._folder / "statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def blocks_in_use(self) -> float:
        """The share of the KV cache that requests hold."""
        lines = httpx.get(f"{self.url}/metrics", timeout=WAIT_S).text.splitlines()
        values = [line for line in lines if line.startswith("apply_kv_cache_usage_perc")]
        return float(values[0].split()[-1])


def _children_of(folder: Path) -> list[int]:
    tasks = (folder / "task").iterdir()
    ids = [int(one) for task in tasks for one in (task / "children").read_text().split()]
    with suppress(FileNotFoundError):
        return ids + [one for child in ids for one in _children_of(folder.parent / str(child))]
    return ids


@pytest.fixture
def server(tiny_model_dir: Path) -> Iterator[Server]:
    with serve_process("--model", str(tiny_model_dir), *SETTINGS) as (started, url):
        started.wait_for("ready: model")
        server = Server(url, started.process.pid)
        yield server
        children = server.children()
        started.process.terminate()
        assert started.end() == 0
        assert children, "texts were read in processes"
        wait_until(lambda: not any(map(is_running, children)), lambda: children)
        assert "Traceback" not in "".join(started.log)


def is_running(process_id: int) -> bool:
    """Whether there is such a process that has not ended; one that nobody has asked for has."""
    try:
        return ") Z " not in (Path("/proc") / str(process_id) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(is_so: Callable[[], bool], what: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < deadline, what()
        time.sleep(0.05)


def use(server: Server, num_requests: int) -> Tally:
    """Send requests of all kinds, each of which ends as it should."""
    tally = asyncio.run(
        run_clients(server.url, MIXED, num_clients=NUM_CLIENTS, num_requests=num_requests)
    )
    assert tally.num_sent == num_requests
    assert tally.num_lost == 0
    assert set(tally.endings) <= GOOD_ENDINGS, tally.endings
    return tally


def check_as_before(server: Server, before: Holdings) -> None:
    """Nothing is held that was not held before, once everybody has left."""

    def is_as_before() -> bool:
        now = server.holdings()
        return (
            now.num_files <= before.num_files
            and now.num_children == before.num_children
            and now.num_threads <= before.num_threads + MAX_POOL_THREADS
            and server.blocks_in_use() == 0.0
        )

    wait_until(is_as_before, lambda: (before, server.holdings(), server.blocks_in_use()))


def slope_of(values: list[int]) -> float:
    """How much a value grows from one sample to the next, by least squares."""
    return statistics.linear_regression(range(len(values)), values).slope


def test_requests_of_all_kinds_leave_nothing_behind(server: Server) -> None:
    use(server, 40)
    before = server.holdings()
    use(server, 60)
    check_as_before(server, before)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_thousand_requests_leave_nothing_behind_and_memory_flat(server: Server) -> None:
    step = 50
    use(server, 100)
    before = server.holdings()
    memory = []
    for _ in range(2000 // step):
        use(server, step)
        memory.append(server.memory_bytes())
    check_as_before(server, before)
    late = memory[len(memory) // 2 :]
    figures = [round(value / 2**20, 1) for value in memory]
    slope = slope_of(late) / step
    print(
        f"MiB of memory after each {step} requests: {figures}; at last {slope:.0f} bytes a request"
    )
    assert slope <= MAX_SLOPE_BYTES
