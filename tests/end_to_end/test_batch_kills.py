"""kill -9 of the client and of the server in mid-batch: each edit is done once, no file is torn."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from serve_process import ROOT, ServeProcess

NUM_FILES, NUM_EDITS = 3, 8  # edits of each file
NUM_KILLS = 2
WAIT_S = 60.0


def source(value: int) -> str:
    """A file after `value` edits; none of them can be done twice, or before the one before it."""
    return f"import this\n\n\ndef count():\n    number = {value}\n    return number\n"


def prepare(folder: Path) -> tuple[Path, Path]:
    """A root with files, and edits that take turns between them."""
    root = folder / "repo"
    root.mkdir(parents=True)
    lines = []
    for value in range(NUM_EDITS):
        for number in range(NUM_FILES):
            update = f"@@\n def count():\n-    number = {value}\n+    number = {value + 1}\n"
            lines.append(json.dumps({"path": f"{number}.py", "update": update}))
    for number in range(NUM_FILES):
        (root / f"{number}.py").write_text(source(0))
    edits = folder / "edits.jsonl"
    edits.write_text("".join(f"{line}\n" for line in lines))
    return root, edits


class BatchProcess:
    """`apply-client batch --write` as a process of its own."""

    def __init__(self, root: Path, edits: Path, url: str) -> None:
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("APPLY_")
        }
        environment["PYTHONPATH"] = str(ROOT / "clients" / "python")
        self.journal = edits.with_name("edits.jsonl.journal")
        self._num_lines = self._count_lines()
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "apply_client", "batch", str(edits), "--root", str(root)),
                *("--write", "--use-model", "never", "--url", url, "--timeout", "60"),
                *("--concurrency", "2"),
            ],
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def wait_for_progress(self, num_lines: int) -> None:
        """Wait until the journal has so many more lines than before; the run must not be over."""
        deadline = time.monotonic() + WAIT_S
        while self._count_lines() < self._num_lines + num_lines:
            assert time.monotonic() < deadline
            assert self.process.poll() is None, self.end()
            time.sleep(0.001)

    def end(self) -> tuple[int, str]:
        """The exit code and what was said."""
        _, error = self.process.communicate(timeout=WAIT_S)
        return self.process.returncode, error

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.end()

    def _count_lines(self) -> int:
        return self.journal.read_bytes().count(b"\n") if self.journal.exists() else 0


def values_of(root: Path) -> list[int]:
    """How many edits each file has had; every file is whole."""
    values = []
    for number in range(NUM_FILES):
        text = (root / f"{number}.py").read_text()
        found = re.search(r"number = (\d+)", text)
        assert found is not None, text
        assert text == source(int(found[1]))
        values.append(int(found[1]))
    return values


def check_done(root: Path, journal: Path, outcome: tuple[int, str]) -> None:
    num_steps = NUM_FILES * NUM_EDITS
    assert outcome[0] == 0, outcome[1]
    assert outcome[1].endswith(f"{num_steps} edits: {num_steps} applied\n")
    assert values_of(root) == [NUM_EDITS] * NUM_FILES
    lines = [json.loads(line) for line in journal.read_text().splitlines()[1:]]
    ended = [line["step"] for line in lines if line["event"] == "end"]
    assert sorted(ended, key=int) == [str(step) for step in range(1, num_steps + 1)]


def start_server(flags: Sequence[str]) -> tuple[ServeProcess, str]:
    server = ServeProcess(*flags)
    url = server.wait_for(r"listening on (http://[^\s,\"]+)")[1]
    server.wait_for("ready: model")
    return server, url


@pytest.mark.timeout(300)
def test_every_edit_is_done_once(tiny_model_dir: Path, tmp_path: Path) -> None:
    flags = ["--model", str(tiny_model_dir), "--profile", "embedded", "--port"]
    server, url = start_server([*flags, "0"])
    try:
        root, edits = prepare(tmp_path / "client killed")
        for _ in range(NUM_KILLS):
            batch = BatchProcess(root, edits, url)
            batch.wait_for_progress(5)
            batch.kill()
            assert 0 < sum(values_of(root)) < NUM_FILES * NUM_EDITS
        batch = BatchProcess(root, edits, url)
        outcome = batch.end()
        assert "edits are done; going on behind them" in outcome[1]
        check_done(root, batch.journal, outcome)

        root, edits = prepare(tmp_path / "server killed")
        batch = BatchProcess(root, edits, url)
        batch.wait_for_progress(5)
        server.kill()
        assert 0 < sum(values_of(root)) < NUM_FILES * NUM_EDITS
        server, _ = start_server([*flags, url.rpartition(":")[2]])
        check_done(root, batch.journal, batch.end())
    finally:
        server.kill()
