"""Two states of the code side by side: the same edits to two servers, in turns.

    python tests/oracle.py service.two_states URL_BEFORE URL_AFTER tests/cases/*_edits.jsonl.gz

Each cell (`use_model`, edits at once) has edits of its own, so that none finds another's prompt in
a cache. They go in groups, to one server and then to the other, which begin in turns: other work
of the machine falls on both alike. It prints seconds of an edit and edits a second of both, their
ratios, and how many texts and statuses differ; it exits with 1 if any does.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from oracles.edits.grammar_overhead import quantile

from apply_service.evaluate.cases.case_file import Case, read_cases

LIMIT_S = 600.0
SEED = 0


@dataclass
class Side:
    """One server and what was measured of it in a cell."""

    client: httpx.Client
    seconds: list[float] = field(default_factory=list)
    wall_s: float = 0.0

    def ask(self, bodies: Sequence[dict[str, Any]]) -> list[tuple[object, ...]]:
        """A group at once; what each answer promises."""
        began = time.perf_counter()
        with ThreadPoolExecutor(len(bodies)) as threads:
            answers = list(threads.map(self._one, bodies))
        self.wall_s += time.perf_counter() - began
        return answers

    def _one(self, body: dict[str, Any]) -> tuple[object, ...]:
        began = time.perf_counter()
        answer = self.client.post("/v1/apply", json=body).json()
        self.seconds.append(time.perf_counter() - began)
        return answer.get("merged"), answer["status"], answer.get("code")


def body_of(case: Case, use_model: str) -> dict[str, Any]:
    """The request for a case."""
    body = {"path": case.path, "original": case.original, "update": case.update}
    if case.instruction:
        body["instruction"] = case.instruction
    return {**body, "use_model": use_model, "deadline_s": 100}


def run_cell(sides: tuple[Side, Side], bodies: Sequence[dict[str, Any]], at_once: int) -> int:
    """How many answers differ."""
    num_different = 0
    for number, start in enumerate(range(0, len(bodies), at_once)):
        group = bodies[start : start + at_once]
        order = sides if number % 2 else sides[::-1]
        answers = {id(side): side.ask(group) for side in order}
        pairs = zip(answers[id(sides[0])], answers[id(sides[1])], strict=True)
        num_different += sum(before != after for before, after in pairs)
    return num_different


def cells(args: argparse.Namespace) -> Iterator[tuple[str, int, list[dict[str, Any]]]]:
    """Mode, edits at once and requests of each cell."""
    cases = [case for path in args.cases for case in read_cases(path)]
    random.Random(SEED).shuffle(cases)
    left = iter(cases)
    for mode in args.modes:
        for at_once in args.at_once:
            chosen = [case for _, case in zip(range(args.edits), left, strict=False)]
            yield mode, at_once, [body_of(case, mode) for case in chosen]


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("cases", type=Path, nargs="+")
    parser.add_argument("--edits", type=int, default=100, help="of each cell")
    parser.add_argument("--modes", nargs="+", default=["auto", "always"])
    parser.add_argument("--at-once", type=int, nargs="+", default=[1, 4, 16])
    args = parser.parse_args()
    print("| use_model | at once | edits | p50 s | p90 s | edits/s | different |")
    print("|---|---|---|---|---|---|---|")
    num_different = 0
    with (
        httpx.Client(base_url=args.before, timeout=LIMIT_S) as before_client,
        httpx.Client(base_url=args.after, timeout=LIMIT_S) as after_client,
    ):
        for mode, at_once, bodies in cells(args):
            sides = Side(before_client), Side(after_client)
            different = run_cell(sides, bodies, at_once)
            num_different += different
            shown = [
                ratio_text(*(statistics.median(side.seconds) for side in sides)),
                ratio_text(*(quantile(side.seconds, 0.9) for side in sides)),
                ratio_text(*(len(bodies) / side.wall_s for side in sides)),
            ]
            row = (mode, at_once, len(bodies), *shown, different)
            print("| " + " | ".join(map(str, row)) + " |", flush=True)
    return 1 if num_different else 0


def ratio_text(before: float, after: float) -> str:
    """Both and their ratio."""
    return f"{before:.3f} → {after:.3f} ({after / before:.2f})"


if __name__ == "__main__":
    sys.exit(main())
