"""`python -m benchmarks house BEFORE AFTER`: two checkouts of this repository side by side.

Rows: files of the fullest folder; files of ours that one edit passes; words of README and docs;
lines of Python by top folder; bytes of the wheel and of a clone one commit deep; milliseconds that
importing the command line and the server takes (`-X importtime`, the median of five). Only what is
committed counts. Both are imported by this interpreter, which needs their dependencies.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.weight.command import clone_of, file_sizes, history_bytes, megabytes, wheel_bytes

NUM_IMPORTS = 5
# What stands between spaces, unless it is punctuation alone, such as the bars of a table.
_WORD = re.compile(r"\S*\w\S*")
CLIENT = Path("clients/python")


def add_house_command(subparsers: Any) -> None:
    """Register `house` below `python -m benchmarks`."""
    parser = subparsers.add_parser(
        "house", help="two states of this repository side by side", description=__doc__
    )
    parser.add_argument("before", type=Path, help="a checkout")
    parser.add_argument("after", type=Path, help="another checkout")


def run_house(args: argparse.Namespace) -> int:
    """Measure both and print a Markdown table; the exit code."""
    before, after = (figures_of(root.resolve()) for root in (args.before, args.after))
    print("| what | before | after |\n|---|---|---|")
    for name in before | after:
        print(f"| {name} | {before.get(name, '–')} | {after.get(name, '–')} |")
    return 0


def figures_of(root: Path) -> dict[str, str]:
    """The rows of one checkout, by their names."""
    with tempfile.TemporaryDirectory() as folder:
        clone = clone_of(root, Path(folder))
        sizes = file_sizes(clone)
        python = [path for path in sizes if path.suffix == ".py"]
        pages = [path for path in sizes if path.suffix == ".md" and path.parts[0] == "docs"]
        words = sum(
            len(_WORD.findall((clone / page).read_text(encoding="utf-8")))
            for page in (*pages, Path("README.md"))
        )
        fullest, num_files = Counter(
            path.parent for path in python if path.parts[0] != "tests"
        ).most_common(1)[0]
        figures = {
            "files of the fullest folder": f"{num_files} (`{fullest}`)",
            "files that one edit passes": str(len(passed_files(clone))),
            "words of README and docs": f"{words:,}",
            "import of the command line": f"{import_ms(clone, command_line_of(clone)):.0f} ms",
            "import of the server": f"{import_ms(clone, server_of(clone)):.0f} ms",
            "clone, one commit deep": megabytes(history_bytes(clone)).strip(),
        }
        lines: Counter[str] = Counter()
        for path in python:
            lines[path.parts[0]] += (clone / path).read_bytes().count(b"\n")
        figures |= {f"lines of Python in `{name}`": f"{lines[name]:,}" for name in sorted(lines)}
        figures["wheel"] = megabytes(wheel_bytes(clone)).strip()
        return figures


def command_line_of(clone: Path) -> str:
    """The module that parses commands; it was `__main__` before `cli` was there."""
    is_room = (clone / "apply_service/cli/main.py").exists()
    return "apply_service.cli.main" if is_room else "apply_service.__main__"


def server_of(clone: Path) -> str:
    """The module of `serve`, which imports routes, engine and grammars."""
    is_room = (clone / "apply_service/cli/serve.py").exists()
    return "apply_service.cli.serve" if is_room else "apply_service.server"


def passed_files(clone: Path) -> list[str]:
    """Files of a checkout that run for one edit. Raises CalledProcessError."""
    program = Path(__file__).with_name("traced_request.py")
    run = subprocess.run(
        [sys.executable, str(program), str(clone)],
        env=environment_of(clone),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    paths: list[str] = json.loads(run.stdout.splitlines()[-1])
    return paths


def import_ms(clone: Path, module: str) -> float:
    """Milliseconds that importing a module takes, the median of some processes."""
    taken = []
    for _ in range(NUM_IMPORTS):
        run = subprocess.run(
            [sys.executable, "-X", "importtime", "-c", f"import {module}"],
            cwd=clone,
            env=environment_of(clone),
            check=True,
            capture_output=True,
            text=True,
        )
        # "import time: self | cumulative | name" in microseconds; the last line is the whole.
        taken.append(int(run.stderr.splitlines()[-1].split("|")[1]) / 1000)
    return statistics.median(taken)


def environment_of(clone: Path) -> dict[str, str]:
    """An environment in which the packages of a checkout are found first."""
    return os.environ | {"PYTHONPATH": os.pathsep.join((str(clone), str(clone / CLIENT)))}
