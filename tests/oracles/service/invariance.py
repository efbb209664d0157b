"""Whether an answer depends on anything but its request: the same edits in five ways.

    python tests/oracle.py service.invariance --out runs.jsonl tests/cases/*_edits.jsonl.gz
    python tests/oracle.py service.invariance --out runs.jsonl --only-report

Two engines share a Redis. One is in this process and computes whole prompts in a step, and its KV
cache is so small that an edit's blocks have left it when the edit comes again; the other is in a
process of its own and computes by small chunks. Eight edits at a time are computed alone, warm
from the host's memory, warm from Redis, eight at once, and without speculation. Text, status,
findings and confidence must be equal.

The model is asked about every edit: bound to the valid merges, or free ("free" in a row's key).
Short edits come first, and a run that was stopped goes on where it ended. `ONEDNN_MAX_CPU_ISA`
chooses the instruction set. Exits with 1 if an answer differs.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import os
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
from redis_process import RedisProcess

from apply_service.apply.edit_request import EditRequest
from apply_service.apply.run import ApplyPipeline, PipelineLimits
from apply_service.config import Settings, load_settings
from apply_service.evaluate.cases.case_file import Case, read_cases
from apply_service.evaluate.cases.planned_case import edit_of_case
from apply_service.evaluate.contenders.pipeline import FORESEEN_ERRORS
from apply_service.evaluate.run_log import RunLog
from apply_service.http.problems import problem_of
from apply_service.models.loading import load_to_stay
from apply_service.models.remote_engine import launch_model
from batching.async_engine import AsyncEngine
from kernels.instruction_set import instruction_set

WAYS = ("alone", "host", "redis", "together", "plain")
_GROUP = 8
# Of characters; free answers are written without speculation too, token by token.
_MAX_BOUND, _MAX_FREE = 2600, 1200
_MAX_FREE_ANSWER = 160
_SMALL_KV_TOKENS = 1800
_SMALL_CHUNK = 48


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What must be equal, and how it was computed; `status` is a problem's code without verdict."""

    status: str
    text: str | None = None
    findings: list[str] = []
    confidence: float | None = None
    num_passes: int = 0
    num_cached: int = 0
    tiers: list[str] = []

    @property
    def promise(self) -> tuple[object, ...]:
        """The part that may not depend on the way."""
        return (self.text, self.status, self.findings, self.confidence)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One edit in all ways."""

    key: str
    answers: dict[str, Answer]

    @property
    def different(self) -> list[str]:
        """The ways whose answer is not the one alone."""
        alone = self.answers["alone"].promise
        return [way for way in WAYS if self.answers[way].promise != alone]


class Service:
    """One engine with its pipeline."""

    def __init__(self, settings: Settings) -> None:
        loaded = (load_to_stay if settings.in_process else launch_model)(settings, report=print)
        self._engine = AsyncEngine(loaded.engine)
        self.dtype = self._engine.model_info.dtype
        self.kv_bytes_per_token = self._engine.model_info.kv_bytes_per_token
        limits = PipelineLimits(
            max_file_bytes=settings.max_file_bytes, max_draft_tokens=settings.max_draft_tokens
        )
        self._pipeline = ApplyPipeline.on_engine(self._engine, loaded.profile, limits)

    def start(self) -> None:
        """Start the engine on the running loop."""
        self._engine.start()

    async def stop(self) -> None:
        """Stop the engine."""
        await self._engine.stop()

    async def answer(self, edit: EditRequest, salt: str) -> Answer:
        """What comes of an edit, among cached work of the same salt."""
        try:
            outcome = await self._pipeline.apply(replace(edit, cache_salt=salt.encode()))
        except FORESEEN_ERRORS as error:
            return Answer(status=problem_of(error).code)
        stats = outcome.stats
        return Answer(
            status=outcome.verdict.status,
            text=hashlib.sha256(outcome.merged.encode()).hexdigest(),
            findings=[repr(finding) for finding in outcome.verdict.findings],
            confidence=outcome.confidence,
            num_passes=stats.target_passes,
            num_cached=stats.num_cached_tokens,
            tiers=[f"{look.tier}:{look.decision}" for look in stats.prefix_lookups],
        )


async def answer_group(
    whole: Service, chunked: Service, group: Sequence[tuple[str, EditRequest]]
) -> list[Row]:
    """All ways for some edits; warm ones share the salt of the first."""

    async def each(service: Service, salt: str, max_drafts: int | None = None) -> list[Answer]:
        return [
            await service.answer(replace(edit, max_draft_tokens=max_drafts), salt + key)
            for key, edit in group
        ]

    alone = await each(whole, "first")
    plain = await each(whole, "plain", max_drafts=0)
    host = await each(whole, "first")  # by now the device's blocks are those of others
    redis = await each(chunked, "first")
    together = await asyncio.gather(
        *(chunked.answer(edit, "together" + key) for key, edit in group)
    )
    answers = zip(alone, host, redis, together, plain, strict=True)
    return [
        Row(key=key, answers=dict(zip(WAYS, ways, strict=True)))
        for (key, _), ways in zip(group, answers, strict=True)
    ]


def edits_of(paths: Sequence[Path]) -> list[tuple[str, EditRequest]]:
    """Short edits of all files in a fixed order: four bound to the merges, then a free one."""
    bound, free = [], []
    for path in paths:
        for case in read_cases(path):
            edit = edit_of_case(case)
            if _num_characters(case) <= _MAX_BOUND:
                bound.append((f"{path.name}:{case.id}", edit))
            if _num_characters(case) <= _MAX_FREE:
                changes = replace(edit, constraint="none", max_answer_tokens=_MAX_FREE_ANSWER)
                free.append((f"free {path.name}:{case.id}", changes))
    random.Random(0).shuffle(bound)
    random.Random(0).shuffle(free)
    for number, item in enumerate(free):
        bound.insert(5 * number + 4, item)
    return bound


def _num_characters(case: Case) -> int:
    return len(case.original) + len(case.update)


def report_lines(rows: Sequence[Row]) -> Iterator[str]:
    """Counts of edits that asked the model, of warm starts, and every difference."""
    for name in ("bound", "free"):
        some = [row for row in rows if row.key.startswith("free ") == (name == "free")]
        asked = [row for row in some if row.answers["alone"].num_passes]
        sure = sum(row.answers["alone"].confidence is not None for row in asked)
        warm = {way: sum(row.answers[way].num_cached > 0 for row in asked) for way in WAYS[1:3]}
        different = sum(bool(row.different) for row in asked)
        yield (
            f"{name}: {len(some)} edits, {len(asked)} asked the model, {sure} with a confidence,"
            f" warm {warm}, {different} different"
        )
    tiers = Counter(
        f"{way} {tier}" for row in rows for way in WAYS for tier in row.answers[way].tiers
    )
    yield f"lookups: {dict(tiers)}"
    for row in rows:
        if row.different:
            yield f"{row.key}: {row.different}"
            yield from (f"    {way} {row.answers[way]}" for way in ("alone", *row.different))


async def run(args: argparse.Namespace, settings: Settings, log: RunLog[Row]) -> None:
    """Compute what the log does not have yet."""
    chunked = Service(
        msgspec.structs.replace(settings, max_tokens_per_step=_SMALL_CHUNK, in_process=False)
    )
    small_bytes = _SMALL_KV_TOKENS * chunked.kv_bytes_per_token
    whole = Service(msgspec.structs.replace(settings, kv_memory=small_bytes, in_process=True))
    print(instruction_set(), whole.dtype, flush=True)
    known = {row.key for row in log.rows}
    todo = [item for item in edits_of(args.cases)[: args.limit] if item[0] not in known]
    for service in (whole, chunked):
        service.start()
    try:
        for start in range(0, len(todo), _GROUP):
            for row in await answer_group(whole, chunked, todo[start : start + _GROUP]):
                log.add(row)
            print("\n".join(report_lines(log.rows)), flush=True)
    finally:
        for service in (whole, chunked):
            await service.stop()


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cases", type=Path, nargs="*")
    parser.add_argument("--out", type=Path, required=True, help="finished runs, kept between calls")
    parser.add_argument("--limit", type=int, default=300, help="so many edits")
    parser.add_argument("--only-report", action="store_true", help="run nothing")
    args = parser.parse_args()
    identity = {"oracle": "invariance", "instruction_set": instruction_set()}
    log = RunLog(args.out, identity=identity, row_type=Row)
    if not args.only_report:
        redis = RedisProcess()
        try:
            flags = {"redis_url": redis.url, "cache_memory": "256MiB"}
            settings = load_settings(flags=flags, environment=os.environ).settings
            asyncio.run(run(args, settings, log))
        finally:
            redis.kill()
    print("\n".join(report_lines(log.rows)))
    return 1 if any(row.different for row in log.rows) else 0


if __name__ == "__main__":
    sys.exit(main())
