"""Libraries that merge, each in an environment of its own that `lazy-edit-bench install` makes."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import venv
from dataclasses import dataclass
from pathlib import Path

from lazy_edit_bench.judge import Answer, file_text
from lazy_edit_bench.task import BenchError, Dialect, Task

SCRIPTS = Path(__file__).parent / "worker_scripts"
INSTALL_TIMEOUT_S = 900


@dataclass(frozen=True, slots=True)
class Library:
    """What is installed for a system, and the dialect that it speaks.

    `packages` are installed without what they depend on; all that their merging code needs is
    listed. The first one gives the version.
    """

    dialect: Dialect
    packages: tuple[str, ...]
    call: str
    registry: str = "pypi"


_AIDER = (
    "aider-chat==0.86.1",
    "packaging==25.0",
    "diff-match-patch==20241021",
    "oslex==0.1.3",
    "mslex==1.3.0",
    "rich==14.1.0",
    "pygments==2.19.2",
    "markdown-it-py==4.0.0",
    "mdurl==0.1.2",
    "tqdm==4.67.1",
)
LIBRARIES = {
    "aider-edit-block": Library("search_replace", _AIDER, "editblock_coder.do_replace"),
    "aider-udiff": Library("diff", _AIDER, "udiff_coder.do_replace"),
    "fastedits": Library("markers", ("fastedits==0.5.0",), "text_match.deterministic_edit"),
    "whatthepatch": Library("diff", ("whatthepatch==1.0.7",), "whatthepatch.apply_diff"),
    "patch-ng": Library("diff", ("patch-ng==1.19.1",), "fromstring(update).apply(strip=1)"),
    "jsdiff": Library("diff", ("diff@9.0.0",), "applyPatch", "npm"),
}


def install(name: str, folder: Path) -> None:
    """Make the environment of a system. Raises BenchError."""
    library = LIBRARIES[name]
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    if library.registry == "npm":
        (place / "package.json").write_text("{}", encoding="utf-8")
        command = ["npm", "install", "--silent", "--ignore-scripts", *library.packages]
    else:
        venv.create(place, with_pip=True)
        command = [str(place / "bin/python"), "-m", "pip", "install", "--quiet", "--no-deps"]
        command += library.packages
    try:
        subprocess.run(
            command, cwd=place, check=True, capture_output=True, text=True,
            timeout=INSTALL_TIMEOUT_S,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        said = str(getattr(error, "stderr", "") or error).strip()[-400:]
        raise BenchError(f"{name} cannot be installed: {said}") from error


class Worker:
    """A library behind a pipe. Requests take turns."""

    def __init__(self, name: str, folder: Path) -> None:
        library = LIBRARIES[name]
        place = folder / name
        if library.registry == "npm":
            command = ["node", str(SCRIPTS / "js_worker.mjs")]
        else:
            command = [str(place / "bin/python"), str(SCRIPTS / "python_worker.py"), name]
        if not place.exists():
            raise BenchError(f"{name} is not installed; run `lazy-edit-bench install {name}`")
        self.name = name
        self.version = library.packages[0].replace("@", "==").rpartition("==")[2]
        self.command = f"{library.packages[0]}: {library.call}"
        self.dialects: tuple[Dialect, ...] = (library.dialect,)
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            command, cwd=place, text=True, encoding="utf-8",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def answer(self, task: Task) -> Answer:
        """Send the task and wait for the line that answers it."""
        asked = {"path": task.path, "original": file_text(task), "update": task.update}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            started = time.perf_counter()
            try:
                self._process.stdin.write(json.dumps(asked) + "\n")
                self._process.stdin.flush()
                line = self._process.stdout.readline()
            except OSError as error:
                line = ""
                print(f"{self.name}: {error}", file=sys.stderr)
            seconds = time.perf_counter() - started
        if not line:
            raise BenchError(f"the process of {self.name} ended; run its script by hand to see why")
        said = json.loads(line)
        return Answer(
            status=said["status"],
            text=said.get("text"),
            seconds=seconds,
            note=said.get("note", ""),
        )

    def close(self) -> None:
        """End the process."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(timeout=30)
        if self._process.stdout is not None:
            self._process.stdout.close()
