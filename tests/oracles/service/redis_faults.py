"""The same edits on live servers whose Redis fails in every way of `fault_suite`. Run by hand.

    python tests/oracle.py service.redis_faults tests/cases/everyday_edits.jsonl.gz

A server without Redis answers first, one edit at a time; another fills a Redis. Then each fault
gets a server with empty memory and a Redis that was filled alike; the model's weights alone stay
(`redis_fault_server`). Every edit asks the model. One
line for each fault: answers (text, status, findings, confidence) that are equal to those without
Redis, edits that loaded something, edits that waited for Redis longer than half a second, and all
that the edits waited. A wait is the search in the cache (`timing.load`) and what the answer took
beyond `timing.total`, as far as that is 0.1 s more than it took without Redis. Exits with 1 if an
answer differs, or if edits that loaded nothing waited more than 1.2 s together.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from fault_suite import FAULTS, Fault
from redis_fault_server import FaultServer
from redis_process import RedisProcess

from apply_service.evaluate.cases.case_file import Case, read_cases

ANSWER_LIMIT_S = 120.0
STORE_LIMIT_S = START_LIMIT_S = 120.0
LONG_WAIT_S = 0.5
MAX_WAIT_S = 1.2
NOISE_S = 0.1


@dataclass(frozen=True)
class Answered:
    """One edit: all that must be equal, and where its time went."""

    answer: tuple[Any, ...]
    num_regions: int
    num_loaded_tokens: int
    load_s: float
    outside_s: float


def ask(client: httpx.Client, case: Case) -> Answered:
    """Send one edit and wait for its answer."""
    body = {"path": case.path, "original": case.original, "update": case.update}
    if case.instruction:
        body["instruction"] = case.instruction
    began = time.monotonic()
    response = client.post("/v1/apply", json=body)
    seconds = time.monotonic() - began
    answer = response.json()
    timing = answer.get("timing") or {}
    lookups = timing.get("prefix_lookups") or []
    return Answered(
        answer=tuple(
            answer.get(name)
            for name in ("merged", "status", "findings", "confidence", "source", "code")
        ),
        num_regions=len(answer.get("regions") or ()) if response.is_success else 0,
        num_loaded_tokens=sum(one["tokens"] for one in lookups if one["tier"] == "redis"),
        load_s=timing.get("load", 0.0),
        outside_s=seconds - timing.get("total", 0.0) if timing else 0.0,
    )


@contextmanager
def client_of(server: FaultServer, redis_url: str | None) -> Iterator[httpx.Client]:
    """A client of the server, which has a new engine, empty memory and this Redis."""
    url = server.restart(redis_url)
    headers = {"Authorization": f"Bearer {server.key}"}
    with httpx.Client(base_url=url, headers=headers, timeout=ANSWER_LIMIT_S) as client:
        until = time.monotonic() + START_LIMIT_S
        while client.get("/health/ready?model=ready").status_code != 200:
            assert time.monotonic() < until, "the server did not become ready"
            time.sleep(0.02)
        yield client


def choose(
    server: FaultServer, cases: Sequence[Case], num_edits: int
) -> tuple[list[Case], list[Answered]]:
    """Short edits of different files with one region each, and their answers without Redis."""
    by_file = {case.original: case for case in reversed(cases)}
    shortest = sorted(by_file.values(), key=lambda case: len(case.original) + len(case.update))
    chosen = []
    with client_of(server, None) as client:
        for case in shortest:
            answered = ask(client, case)
            if answered.num_regions == 1:
                chosen.append((case, answered))
            if len(chosen) == num_edits:
                break
    return [case for case, _ in chosen], [answered for _, answered in chosen]


def fill(server: FaultServer, cases: Sequence[Case]) -> dict[bytes, bytes]:
    """The values that a server writes for these edits."""
    redis = RedisProcess()
    try:
        with client_of(server, redis.url) as client:
            for case in cases:
                ask(client, case)
            until = time.monotonic() + STORE_LIMIT_S
            while 'queue_depth{tier="redis"} 0.0' not in client.get("/metrics").text:
                assert time.monotonic() < until, "the prompts are not written"
                time.sleep(0.1)
        return {key: redis.get(key) for key in redis.all_keys("apply-kv:*")}
    finally:
        redis.kill()


def run(
    server: FaultServer, fault: Fault, values: dict[bytes, bytes], cases: Sequence[Case]
) -> list[Answered]:
    """The edits under a fault of a Redis that holds these values."""
    redis = RedisProcess()
    try:
        for key, value in values.items():
            redis.call("SET", key, value)
        with fault(redis) as url, client_of(server, url) as client:
            return [ask(client, case) for case in cases]
    finally:
        redis.kill()


def report(name: str, answers: Sequence[Answered], expected: Sequence[Answered]) -> bool:
    """Print a line; whether all is as it should be."""
    usual_s = statistics.median(one.outside_s for one in expected)
    num_equal = sum(
        one.answer == other.answer for one, other in zip(answers, expected, strict=True)
    )
    waits = []
    for one in answers:
        beyond_s = one.outside_s - usual_s
        waits.append(one.load_s + (beyond_s if beyond_s > NOISE_S else 0.0))
    vain_s = sum(
        wait for wait, one in zip(waits, answers, strict=True) if not one.num_loaded_tokens
    )
    num_loaded = sum(one.num_loaded_tokens > 0 for one in answers)
    num_long = sum(wait > LONG_WAIT_S for wait in waits)
    print(
        f"{name:26} {num_equal:3}/{len(answers)} equal, {num_loaded:2} loaded,"
        f" {num_long} waits > {LONG_WAIT_S} s, {sum(waits):6.3f} s waited,"
        f" {sum(one.load_s for one in answers):.3f} s of it in searches,"
        f" {vain_s:.3f} s in vain, longest {max(waits):.3f} s",
        flush=True,
    )
    return num_equal == len(answers) and vain_s <= MAX_WAIT_S


def main() -> int:
    """Run the faults and judge them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cases", type=Path, nargs="+")
    parser.add_argument("--edits", type=int, default=30)
    parser.add_argument("--faults", nargs="+", choices=FAULTS, default=list(FAULTS))
    args = parser.parse_args()
    with closing(FaultServer()) as server:
        all_cases = [case for path in args.cases for case in read_cases(path)]
        cases, expected = choose(server, all_cases, args.edits)
        values = fill(server, cases)
        print(f"{len(cases)} edits, {len(values)} chunks, {sum(map(len, values.values()))} bytes")
        with client_of(server, None) as client:
            again = [ask(client, case) for case in cases]
        is_good = report("without Redis, again", again, expected)
        for name in args.faults:
            is_good &= report(name, run(server, FAULTS[name], values, cases), expected)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
