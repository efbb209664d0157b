"""`python -m benchmarks NAME`: a package `benchmarks.NAME` with a `command` each."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from apply_service.cli.main import run_to_exit_code
from apply_service.cli.suggesting_parser import SuggestingParser

BENCHMARKS = {
    "cache": "what the prefix cache saves, over one process and over several",
    "concurrency": "whether the draft budget is ever slower than no drafts",
    "device_model": "how busy the host would keep a GPU",
    "drafters": "measure drafters on expected answers, without a model",
    "fleet": "what several replicas cost and hold",
    "gpu": "time steps and attention on a GPU with random weights",
    "growth": "how cost grows with files, edits, requests at once and drafts",
    "house": "two states of this repository side by side: folders, lines, words, imports",
    "host": "what a step costs the host beside its pass",
    "kernels": "registers, spills and shared memory of the kernels on GPUs",
    "load": "open-loop load on a running service: latency and goodput at rising rates",
    "picture": "draw the picture of the README from a real answer",
    "speculators": "time the real model with each drafter",
    "speed": "time the real model against its peers",
    "weight": "what a clone of this repository and its wheel weigh",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one benchmark; the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    return run_to_exit_code(lambda: _run(arguments))


def _run(arguments: Sequence[str]) -> int:
    parser = SuggestingParser(prog="python -m benchmarks", description="Measures this project.")
    subparsers = parser.add_subparsers(dest="name", required=True, metavar="NAME")
    for name, text in BENCHMARKS.items():
        if [name] == list(arguments[:1]):
            _function("add", name)(subparsers)
        else:
            subparsers.add_parser(name, help=text)
    args = parser.parse_args(arguments)
    return int(_function("run", args.name)(args))


def _function(verb: str, name: str) -> Any:
    """`add_NAME_command` or `run_NAME` of a benchmark; its imports are loaded only when asked."""
    module = import_module(f"benchmarks.{name}.command")
    return getattr(module, f"add_{name}_command" if verb == "add" else f"run_{name}")


if __name__ == "__main__":
    sys.exit(main())
