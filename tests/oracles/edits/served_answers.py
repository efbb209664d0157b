"""What two services do with the same cases, side by side. By hand.

`python tests/oracle.py edits.served_answers ask --url URL --out OLD.jsonl FILE…` asks a running
service each case and keeps the answers; cases that are in OLD.jsonl already are not asked again.
`… compare OLD.jsonl NEW.jsonl FILE…` prints, for each group of files with one beginning of their
name, by kind and by language, how often each service was right, and 95 % intervals of the
differences (paired bootstrap). No text of a case is shown.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import msgspec
import numpy as np
from oracles.edits.merge_certainty import report_certainty

from apply_service.edit.place.score.ranked_merges import filled
from apply_service.edit.read.instruction_comments import is_comment
from apply_service.edit.syntax.languages import language_of
from apply_service.edit.text.text_file import split_lines
from apply_service.evaluate.cases.case_file import Case, read_cases

TIMEOUT_S = 180.0
NUM_RESAMPLES = 4000
MIN_GROUP = 10
# What says something of the edit; other errors are of the service or of the caller.
REFUSALS = (400, 413, 422)


class ServiceError(Exception):
    """A service failed, or does not let us in."""


class Served(msgspec.Struct, frozen=True):
    """The answer to a case: a status, the text that came with it if one did, its confidence."""

    id: str
    status: str
    text: str | None
    confidence: float | None
    seconds: float


class Judged:
    """A case with the answer of one service."""

    def __init__(self, case: Case, served: Served) -> None:
        self.case = case
        self.certainty = served.confidence or 0.0
        self.seconds = served.seconds
        self.is_applied = served.status == "applied"
        wanted = [_code(text) for text in case.results]
        lines = None if served.text is None else filled(split_lines(served.text)[0])
        right = [filled(split_lines(text)[0]) for text in case.results]
        self.is_first = lines in right
        self.is_right = self.is_first and not case.must_refuse
        self.must_ask = case.must_refuse and bool(case.also)
        self.must_refuse = case.must_refuse and not case.also
        self.is_silent = self.is_applied and (case.must_refuse or not self.is_first)
        differs = served.text is None or _code(served.text) not in wanted
        self.is_harmful = self.is_silent and (case.must_refuse or differs)


def _code(text: str) -> list[str]:
    """The lines without white space, comments and blank lines: what else differs may do harm."""
    stripped = ("".join(line.split()) for line in split_lines(text)[0])
    return [line for line in stripped if line and not is_comment(line)]


MEASURES: dict[str, tuple[Callable[[Judged], bool], Callable[[Judged], bool]]] = {
    "first right": (lambda one: not one.case.must_refuse, lambda one: one.is_first),
    "applied and right": (
        lambda one: not one.case.must_refuse,
        lambda one: one.is_first and one.is_applied,
    ),
    "right but held back": (
        lambda one: not one.case.must_refuse,
        lambda one: one.is_first and not one.is_applied,
    ),
    "silent": (lambda _: True, lambda one: one.is_silent),
    "silent and harmful": (lambda _: True, lambda one: one.is_harmful),
    "asked, two readings": (lambda one: one.must_ask, lambda one: not one.is_applied),
    "refused, contradicting": (lambda one: one.must_refuse, lambda one: not one.is_applied),
}


def ask(url: str, case: Case, use_model: str) -> Served:
    """Ask a service about one case. Raises ServiceError for an answer that is none."""
    body = {
        "path": case.path,
        "original": case.original,
        "update": case.update,
        "use_model": use_model,
        **({} if case.instruction is None else {"instruction": case.instruction}),
    }
    began = time.perf_counter()
    for attempt in range(20):
        response = httpx.post(f"{url}/v1/apply", json=body, timeout=TIMEOUT_S)
        if response.status_code not in (429, 503):
            break
        time.sleep(0.5 * (attempt + 1))
    if response.status_code != 200 and response.status_code not in REFUSALS:
        raise ServiceError(f"{case.id}: {response.status_code} {response.text[:200]}")
    answer = response.json()
    return Served(
        id=case.id,
        status=answer["status"] if response.status_code == 200 else f"{response.status_code}",
        text=answer.get("merged") if response.status_code == 200 else None,
        confidence=answer.get("confidence"),
        seconds=time.perf_counter() - began,
    )


def ask_all(url: str, out: Path, paths: Sequence[Path], use_model: str, at_once: int) -> None:
    """Ask about all cases that `out` has no answer to."""
    known = {one.id for one in read_answers(out)} if out.exists() else set()
    cases = [case for path in paths for case in read_cases(path) if case.id not in known]
    with ThreadPoolExecutor(at_once) as pool, out.open("ab") as file:
        for number, served in enumerate(pool.map(lambda one: ask(url, one, use_model), cases), 1):
            file.write(msgspec.json.encode(served) + b"\n")
            file.flush()
            if number % 100 == 0 or number == len(cases):
                print(f"{number} of {len(cases)} answered", flush=True)


def read_answers(path: Path) -> list[Served]:
    """The answers that `ask_all` kept."""
    return [msgspec.json.decode(line, type=Served) for line in path.read_bytes().splitlines()]


def compare(old: Sequence[Judged], new: Sequence[Judged], title: str) -> None:
    """Print each measure of both, and the interval of what it rose by."""
    print(f"{title}: {len(new)} cases")
    draws = np.random.default_rng(0)
    for name, (is_asked, holds) in MEASURES.items():
        pairs = [(holds(a), holds(b)) for a, b in zip(old, new, strict=True) if is_asked(b)]
        if not pairs:
            continue
        values = np.array(pairs, float)
        rises = 100 * (values[:, 1] - values[:, 0])
        means = rises[draws.integers(0, len(rises), (NUM_RESAMPLES, len(rises)))].mean(axis=1)
        low, high = np.percentile(means, [2.5, 97.5])
        before, after = values.sum(axis=0)
        print(
            f"  {name:24} {before:5.0f} → {after:5.0f} of {len(pairs):5}"
            f"  {100 * before / len(pairs):5.1f} % → {100 * after / len(pairs):5.1f} %"
            f"  {rises.mean():+5.1f} ({low:+.1f} to {high:+.1f})"
        )


def main() -> int:
    """Ask, or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    asking = commands.add_parser("ask")
    asking.add_argument("--url", required=True)
    asking.add_argument("--out", type=Path, required=True)
    asking.add_argument("--use-model", default="auto")
    asking.add_argument("--at-once", type=int, default=2)
    asking.add_argument("files", type=Path, nargs="+")
    comparing = commands.add_parser("compare")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    comparing.add_argument("files", type=Path, nargs="+")
    chosen = parser.parse_args()
    if chosen.command == "ask":
        try:
            ask_all(chosen.url, chosen.out, chosen.files, chosen.use_model, chosen.at_once)
        except (ServiceError, httpx.HTTPError) as error:
            print(f"{chosen.url}: {error}; what was answered is kept, ask again", file=sys.stderr)
            return 1
        return 0
    for path in (chosen.old, chosen.new):
        if not path.is_file():
            parser.error(f"{path} is not there; `ask` writes it")
    before, after = (
        {one.id: one for one in read_answers(path)} for path in (chosen.old, chosen.new)
    )
    everything: list[Judged] = []
    groups: dict[str, list[Case]] = {}
    for path in chosen.files:
        name = re.sub(r"_?\d*\.jsonl(\.gz)?$", "", path.name)
        groups.setdefault(name, []).extend(read_cases(path))
    for name, all_cases in groups.items():
        cases = [case for case in all_cases if case.id in before and case.id in after]
        if len(cases) < len(all_cases):
            print(f"{name}: {len(all_cases) - len(cases)} cases lack an answer and are left out")
        if not cases:
            continue
        old, new = ([Judged(case, known[case.id]) for case in cases] for known in (before, after))
        everything += new
        compare(old, new, name)
        for title, key in (("kind", _kind), ("language", _language)):
            for one in sorted({key(case) for case in cases}):
                places = [place for place, case in enumerate(cases) if key(case) == one]
                if len(places) >= MIN_GROUP:
                    some = ([all_[place] for place in places] for all_ in (old, new))
                    compare(*some, f"{name}, {title} {one}")
        for label, all_ in (("old", old), ("new", new)):
            seconds = np.percentile([one.seconds for one in all_], [50, 90, 95])
            print(
                f"  {label}: p50, p90, p95 " + ", ".join(f"{1000 * one:.0f} ms" for one in seconds)
            )
    print("confidence of the new one")
    report_certainty([one for one in everything if one.certainty > 0])
    return 0


def _kind(case: Case) -> str:
    return case.style or ""


def _language(case: Case) -> str:
    return language_of(case.path, case.language, split_lines(case.original)[0]) or "other"


if __name__ == "__main__":
    sys.exit(main())
