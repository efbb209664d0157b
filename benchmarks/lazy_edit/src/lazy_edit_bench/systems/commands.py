"""Programs of the command line that apply a patch: `patch` and `git apply`."""

from __future__ import annotations

import subprocess
import tempfile
import time
from pathlib import Path

from lazy_edit_bench.judge import Answer, file_text
from lazy_edit_bench.task import BenchError, Dialect, Task

TIMEOUT_S = 30
COMMAND_LINES = {
    "patch": ["patch", "--batch", "--forward", "--silent", "-p1", "--input=update.diff"],
    "patch-no-fuzz": [
        "patch", "--batch", "--forward", "--silent", "--fuzz=0", "-p1", "--input=update.diff"
    ],
    "git-apply": ["git", "apply", "update.diff"],
    "git-apply-recount": ["git", "apply", "--recount", "--ignore-whitespace", "update.diff"],
}  # fmt: skip


class PatchCommand:
    """A program that patches files in a folder of its own, and says by its status if it did."""

    dialects: tuple[Dialect, ...] = ("diff",)

    def __init__(self, name: str) -> None:
        self.name = name
        self._command = COMMAND_LINES[name]
        self.command = " ".join(self._command)
        try:
            asked = [self._command[0], "--version"]
            said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError) as error:
            raise BenchError(
                f"{self._command[0]} does not run here ({error}); install it"
            ) from None
        self.version = said.splitlines()[0].split()[-1]

    def answer(self, task: Task) -> Answer:
        """Write file and patch, run the program, read the file."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            target = folder / task.path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file_text(task).encode())
            (folder / "update.diff").write_bytes(task.update.encode())
            started = time.perf_counter()
            try:
                done = subprocess.run(
                    self._command, cwd=folder, capture_output=True, timeout=TIMEOUT_S, check=False
                )
            except subprocess.TimeoutExpired:
                return Answer(status="failed", seconds=TIMEOUT_S, note="no end")
            seconds = time.perf_counter() - started
            if done.returncode:
                said = (done.stderr or done.stdout).decode(errors="replace")
                return Answer(status="refused", seconds=seconds, note=said[:300])
            if not target.exists():
                return Answer(status="applied", text="", seconds=seconds)
            text = target.read_bytes().decode(errors="replace")
            return Answer(status="applied", text=text, seconds=seconds)

    def close(self) -> None:
        """Nothing runs on."""
