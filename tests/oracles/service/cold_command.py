"""How long `apply-service apply` takes from a cold start where no model is needed.

    python tests/oracle.py service.cold_command --runs 20

Each run is followed by one of a control, a Python that imports msgspec and ends: other work of the
machine slows both down, so the ratio says more than the seconds.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from oracles.edits.grammar_overhead import quantile

ORIGINAL = "def name(path):\n    return path\n"
UPDATE = "# ...\ndef name(path):\n    path = path.strip()\n    return path\n"


def run_once(command: Sequence[str], folder: Path) -> tuple[float, float]:
    """Seconds on the clock and on the processor of one process that must succeed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True)
    elapsed = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return elapsed, spent


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=20)
    args = parser.parse_args()
    apply = ["-m", "apply_service", "apply", "name.py", "--update", "update.txt", "--diff"]
    commands = {"apply": apply, "control": ["-c", "import msgspec"]}
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "name.py").write_text(ORIGINAL)
        (folder / "update.txt").write_text(UPDATE)
        for _ in range(args.runs):
            for label, command in commands.items():
                seconds[label].append(run_once([sys.executable, *command], folder))
    for index, kind in enumerate(("clock", "processor")):
        taken = {label: [run[index] for run in runs] for label, runs in seconds.items()}
        shown = ", ".join(
            f"{label} p50 {quantile(runs, 0.5):.3f} s, p90 {quantile(runs, 0.9):.3f} s"
            for label, runs in taken.items()
        )
        ratio = quantile(taken["apply"], 0.5) / quantile(taken["control"], 0.5)
        print(f"{kind}: {shown}; ratio of the medians {ratio:.1f}")


if __name__ == "__main__":
    main()
