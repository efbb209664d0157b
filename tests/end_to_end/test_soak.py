"""A server that has been used for long holds no more than one that has just been warmed up."""

from __future__ import annotations

import asyncio
import http.client
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from serve_process import serve_process
from server_holdings import Holdings, Server, check_as_before, is_running, slope_of, wait_until
from traffic import MIXED, Tally, run_clients

NUM_CLIENTS = 16
# Looks in a row that see as many open files, and rounds until all processes are there.
NUM_EQUAL_LOOKS, MAX_ROUNDS = 20, 20
NUM_TEXT_WORKERS = 2
# Those, the process that forks them, the one that multiprocessing has beside it, and the engine.
NUM_CHILDREN = NUM_TEXT_WORKERS + 3
# Less than one small file a request; the caches are too small to grow for long.
MAX_SLOPE_BYTES = 4 << 10
SETTINGS = (
    *("--port", "0", "--profile", "embedded", "--text-workers", str(NUM_TEXT_WORKERS)),
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


def use(server: Server, num_requests: int) -> Tally:
    """Send requests of all kinds, each of which ends as it should."""
    tally = asyncio.run(
        run_clients(server.url, MIXED, num_clients=NUM_CLIENTS, num_requests=num_requests)
    )
    assert tally.num_sent == num_requests
    assert tally.num_lost == 0
    assert set(tally.endings) <= GOOD_ENDINGS, tally.endings
    return tally


def warm_up(server: Server, num_requests: int) -> Holdings:
    """What a server holds once all its processes, which start as they are needed, are there.

    Connections that its clients have left may be open for some seconds more.
    """
    use(server, num_requests)
    for _ in range(MAX_ROUNDS):
        use(server, NUM_CLIENTS)
        now = settled(server)
        if now.num_children == NUM_CHILDREN:
            return now
    raise AssertionError(f"after {MAX_ROUNDS} rounds not all processes are there: {now}")


def settled(server: Server) -> Holdings:
    """What a server holds once it holds the same for some looks in a row."""
    looks: list[Holdings] = []

    def is_settled() -> bool:
        looks.append(server.holdings())
        last = looks[-NUM_EQUAL_LOOKS:]
        return len(last) == NUM_EQUAL_LOOKS and len({look.num_files for look in last}) == 1

    wait_until(is_settled, lambda: looks[-NUM_EQUAL_LOOKS:])
    return looks[-1]


def test_requests_of_all_kinds_leave_nothing_behind(server: Server) -> None:
    before = warm_up(server, 40)
    use(server, 60)
    check_as_before(server, before)


@pytest.mark.slow
def test_a_connection_is_kept_longer_than_clients_keep_it_unused(server: Server) -> None:
    """httpx and OpenAI's packages use one again that has been idle for up to five seconds."""
    use(server, 20)
    address = httpx.URL(server.url)
    connection = http.client.HTTPConnection(address.host, address.port, timeout=60)
    with closing(connection):
        for _ in range(2):
            connection.request("GET", "/health/live")
            with connection.getresponse() as answer:
                assert answer.read() == b'{"status":"live"}'
            time.sleep(7)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_thousand_requests_leave_nothing_behind_and_memory_flat(server: Server) -> None:
    step = 50
    before = warm_up(server, 100)
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
