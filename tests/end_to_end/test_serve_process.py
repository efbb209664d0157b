"""`apply-service serve` as a process of its own, with a real model: start, signals, bad starts."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from apply_service.__main__ import main

ROOT = Path(__file__).parents[2]
START_LIMIT_S = 60.0
EDIT = {
    "original": "".join(f"line_{number} = {number}\n" for number in range(40)),
    "update": "# ... existing code ...\nline_39 = 40\n",
}


class ServeProcess:
    """One server process and what it has written to stderr."""

    def __init__(self, *flags: str) -> None:
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("APPLY_")
        }
        environment.update(PYTHONPATH=str(ROOT), OMP_NUM_THREADS="1")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "apply_service", "serve", "--threads", "1", *flags],
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            preexec_fn=_hear_ctrl_c,
        )
        self.log: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as stream:
            self.log.extend(iter(stream.readline, ""))

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Wait until the log has a line like this."""
        deadline = time.monotonic() + START_LIMIT_S
        while time.monotonic() < deadline:
            match = re.search(pattern, "".join(self.log))
            if match:
                return match
            assert self.process.poll() is None, "".join(self.log)
            time.sleep(0.05)
        raise AssertionError(f"no {pattern!r} in " + "".join(self.log))

    def end(self) -> int:
        """Wait for the exit code."""
        code = self.process.wait(START_LIMIT_S)
        self._reader.join(START_LIMIT_S)
        return code

    def kill(self) -> None:
        """End it the hard way; harmless if it has ended."""
        self.process.kill()
        self.end()


def _hear_ctrl_c() -> None:
    """A shell's background job ignores SIGINT, and so would everything that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def serving(*flags: str) -> Iterator[tuple[ServeProcess, str]]:
    server = ServeProcess(*flags)
    try:
        url = server.wait_for(r"listening on (http://\S+),")[1]
        yield server, url
    finally:
        server.kill()


@pytest.fixture
def flags(tiny_model_dir: Path) -> list[str]:
    return ["--model", str(tiny_model_dir), "--profile", "embedded", "--port", "0"]


def test_ready_second_server_and_sigterm(flags: list[str]) -> None:
    with serving(*flags, "--drain-s", "5") as (server, url):
        early = httpx.get(f"{url}/health/ready", timeout=30)
        assert early.status_code in (200, 503)
        server.wait_for("ready: model")
        assert httpx.get(f"{url}/health/ready").json() == {"status": "ready"}
        response = httpx.post(
            f"{url}/v1/apply",
            json={**EDIT, "checks": "off", "sampling": {"max_tokens": 8}},
            timeout=30,
        )
        assert response.status_code == 200, response.text
        assert response.json()["usage"]["completion_tokens"] == 8

        second = ServeProcess(*flags[:-1], url.rpartition(":")[2])
        assert second.end() == 1
        assert "Address already in use" in second.log[-1]
        assert "--port" in second.log[-1]

        server.process.send_signal(signal.SIGTERM)
        assert server.end() == 0
        assert "Traceback" not in "".join(server.log)


def test_ctrl_c_is_130(flags: list[str]) -> None:
    with serving(*flags) as (server, _):
        server.wait_for("ready: model")
        server.process.send_signal(signal.SIGINT)
        assert server.end() == 130
        assert "Traceback" not in "".join(server.log)


def test_killed_in_mid_request_leaves_the_file(
    flags: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "lines.py"
    file.write_text(EDIT["original"])
    (tmp_path / "update.py").write_text(EDIT["update"])
    with serving(*flags) as (server, url):
        server.wait_for("ready: model")
        monkeypatch.setenv("APPLY_SERVICE_URL", url)
        killer = threading.Thread(target=_kill_when_busy, args=(server, url))
        killer.start()
        arguments = ["apply", str(file), "--update", str(tmp_path / "update.py"), "--write"]
        assert main([*arguments, "--speculation", "off", "--checks", "off"]) == 1
        killer.join()
    assert "did not answer to the end" in capfd.readouterr().err
    assert file.read_text() == EDIT["original"]


def _kill_when_busy(server: ServeProcess, url: str) -> None:
    while "apply_num_requests_running 1.0" not in httpx.get(f"{url}/metrics").text:
        time.sleep(0.01)
    server.process.kill()


def test_a_model_that_cannot_be_loaded_ends_the_server(tmp_path: Path) -> None:
    server = ServeProcess("--model", str(tmp_path / "no" / "such" / "folder"), "--port", "0")
    assert server.end() == 1
    log = "".join(server.log)
    assert "no/such/folder" in log
    assert "the model cannot be served" in log
    assert "Traceback" not in log


def test_a_port_in_use_is_said_before_anything_is_loaded(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert main(["serve", "--port", str(port), "--model", "no/such/model"]) == 1
    assert f"127.0.0.1:{port}: Address already in use" in capfd.readouterr().err
