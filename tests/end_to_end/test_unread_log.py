"""A server whose log nobody reads: stderr is a pipe that is full."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

import httpx
from serve_process import ROOT, START_LIMIT_S, wait_until_ready
from server_holdings import Server, wait_until

NUM_EDITS = 640
LIMIT_S = 60.0
EDIT = {
    "original": "one = 1\ntwo = 2\n",
    "update": "# ... existing code ...\ntwo = 3\n",
    "path": "a.py",
    "use_model": "never",
}
DROPPED = re.compile(r"(\d+) lines of the log were dropped")


def read_until(log: IO[str], pattern: str) -> list[str]:
    """The lines of the log up to the one with `pattern`; what follows stays unread."""
    lines = [log.readline()]
    while not re.search(pattern, lines[-1]):
        assert lines[-1], lines
        lines.append(log.readline())
    return lines


def test_a_full_log_stops_no_edit_and_says_what_it_lacks(tiny_model_dir: Path) -> None:
    flags = ["--model", str(tiny_model_dir), "--profile", "embedded", "--port", "0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "apply_service", "serve", "--threads", "1", *flags],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )
    log = process.stderr
    assert log is not None
    try:
        found = re.search(r"http://[^\s,]+", read_until(log, "listening on")[-1])
        assert found is not None
        url = found[0]
        wait_until_ready(url)
        with httpx.Client(base_url=url, timeout=LIMIT_S) as client:

            def send(_number: int) -> int:
                return client.post("/v1/apply", json=EDIT).status_code

            with ThreadPoolExecutor(4) as threads:
                assert set(threads.map(send, range(NUM_EDITS))) == {200}
            assert client.get("/health/live").status_code == 200
            metrics = client.get("/metrics").text
        counted = re.search(r"^apply_log_lines_dropped_total (\S+)$", metrics, re.MULTILINE)
        assert counted is not None
        assert float(counted[1]) > 0

        server = Server(url, process.pid)
        engine = server.engine_id()
        assert engine is not None
        os.kill(engine, signal.SIGKILL)  # the next one logs into the full pipe too
        wait_until(lambda: server.engine_id() not in (None, engine), server.children)
        wait_until_ready(url)

        lines = read_until(log, DROPPED.pattern)
        reading = threading.Thread(target=lambda: lines.extend(log))
        reading.start()
        process.send_signal(signal.SIGTERM)
        assert process.wait(START_LIMIT_S) == 0
        reading.join(LIMIT_S)
        (told,) = DROPPED.findall("".join(lines))
        assert int(told) >= float(counted[1])
        num_read = sum('"event":"request"' in line.replace(" ", "") for line in lines)
        assert num_read + int(told) >= NUM_EDITS
    finally:
        process.kill()
        process.wait()
        log.close()
