"""What a server answers to case files, kept so that another state of the code can be held to it.

    python tests/oracle.py service.answers record URL answers.jsonl tests/cases/*.jsonl.gz
    python tests/oracle.py service.answers compare before.jsonl after.jsonl

A record has text (as a hash), status, codes of findings and confidence of each case. The server is
asked over HTTP, so one script records both states of the code. Recording goes on where it was
stopped; comparing exits with 1 if an answer differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx

from apply_service.evaluate.cases.case_file import read_lines

ANSWER_LIMIT_S = 600.0
_FIELDS = ("text", "status", "codes", "confidence")


def cases_of(paths: Iterable[Path]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each case with a key that is its own over all files."""
    for path in paths:
        for number, line in enumerate(read_lines(path), start=1):
            yield f"{path.name.removesuffix('.gz')}:{number}", json.loads(line)


def ask(client: httpx.Client, key: str, case: dict[str, Any], options: dict[str, Any]) -> Any:
    """The answer to one case, a rejection with its findings included."""
    body = {name: case[name] for name in ("path", "original", "update")} | options
    if case.get("instruction"):
        body["instruction"] = case["instruction"]
    answer = client.post("/v1/apply", json=body).json()
    text = answer.get("merged")
    return {
        "case": key,
        "text": None if text is None else hashlib.sha256(text.encode()).hexdigest(),
        "status": answer["status"],
        "codes": sorted(finding["code"] for finding in answer.get("findings") or ()),
        "confidence": answer.get("confidence"),
        "is_right": text == case["expected"],
        "code": answer.get("code"),
    }


def record(args: argparse.Namespace) -> int:
    """Ask for the cases that the file does not have yet, so many at once."""
    known = {line["case"] for line in read(args.out)} if args.out.exists() else set()
    todo = [item for item in cases_of(args.cases) if item[0] not in known][:: args.every]
    options = json.loads(args.options)
    with (
        httpx.Client(base_url=args.url, timeout=ANSWER_LIMIT_S) as client,
        ThreadPoolExecutor(args.clients) as threads,
        args.out.open("a", encoding="utf-8") as out,
    ):
        for line in threads.map(lambda item: ask(client, *item, options), todo):
            print(json.dumps(line), file=out, flush=True)
    lines = read(args.out)
    statuses = Counter((str(line["status"]), line["is_right"]) for line in lines)
    print(len(lines), "answers;", *(f"{key}: {count}" for key, count in statuses.most_common()))
    return 0


def compare(args: argparse.Namespace) -> int:
    """Print how many answers both files have, how many differ, and the first of these."""
    before = {line["case"]: line for line in read(args.before)}
    after = {line["case"]: line for line in read(args.after)}
    both = sorted(before.keys() & after.keys())
    different = {
        key: [name for name in _FIELDS if before[key][name] != after[key][name]] for key in both
    }
    different = {key: names for key, names in different.items() if names}
    for key, names in list(different.items())[: args.most]:
        print(key, *(f"{name}: {before[key][name]} -> {after[key][name]}" for name in names))
    print(f"{len(both)} compared, {len(different)} different,", end=" ")
    print(f"{len(before.keys() ^ after.keys())} in one file alone")
    return 1 if different else 0


def read(path: Path) -> list[dict[str, Any]]:
    """The lines of a record."""
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True)
    recording = commands.add_parser("record")
    recording.add_argument("url")
    recording.add_argument("out", type=Path)
    recording.add_argument("cases", type=Path, nargs="+")
    recording.add_argument("--options", default="{}", help="JSON with more fields of the request")
    recording.add_argument("--every", type=int, default=1, help="only each N-th case")
    recording.add_argument("--clients", type=int, default=2)
    recording.set_defaults(run=record)
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.add_argument("--most", type=int, default=20, help="so many differences are shown")
    comparing.set_defaults(run=compare)
    args = parser.parse_args()
    return int(args.run(args))


if __name__ == "__main__":
    sys.exit(main())
