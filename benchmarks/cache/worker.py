"""An engine with the prefix cache in a process of its own, which starts with nothing in memory."""

from __future__ import annotations

import asyncio
import sys
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from apply_service.apply.attempt import attempts_of
from apply_service.apply.edit_request import EditRequest
from apply_service.apply.engine_requests import default_max_tokens, drafts_of
from apply_service.apply.planning.edit_plan import plan_edit
from apply_service.apply.region_prompt import RegionPrompt, build_prompts
from apply_service.edit.text.text_file import TextFile
from apply_service.models.store import resolve_model
from apply_service.prompts.profile import Profile, load_profile
from batching.async_engine import AsyncEngine, RequestHandle
from batching.config import CacheConfig, EngineConfig
from batching.engine import Engine, build_engine
from batching.events import Finished, RequestStats, Tokens
from batching.request import EngineRequest, SamplingParams
from benchmarks.cache.job import CacheJob, CacheRun, WorkerSettings

_FLUSH_S = 60.0
_MAX_FILE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class _End:
    """What one region's request came to."""

    token_ids: list[int]
    first_token_s: float
    stats: RequestStats


class CacheWorker:
    """Runs one edit at a time."""

    def __init__(self, settings: WorkerSettings) -> None:
        """Load the model; the engine has not been started yet."""
        location = resolve_model(settings.model)
        self._profile: Profile = load_profile(location.profile, location.path)
        self._engine: Engine = build_engine(
            EngineConfig(
                model_path=location.path,
                kv_memory_bytes=settings.kv_memory,
                num_threads=settings.threads,
                cache=CacheConfig(
                    memory_bytes=settings.cache_memory,
                    chunk_tokens=settings.chunk_tokens,
                    payload=settings.payload,
                    redis_url=settings.redis_url,
                    timeout_s=settings.timeout_s,
                ),
            )
        )
        self._running = AsyncEngine(self._engine)

    async def serve(self) -> None:
        """Answer jobs of stdin, a JSON object a line, until it ends."""
        self._running.start()
        print(flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            run = await self.run(msgspec.json.decode(line, type=CacheJob))
            print(msgspec.json.encode(run).decode(), flush=True)
        await self._running.stop()

    async def run(self, job: CacheJob) -> CacheRun:
        """One edit with the narrowest attempt that its scope allows."""
        plan = plan_edit(
            EditRequest(
                original=TextFile.from_text(job.original),
                update=job.update,
                path=job.path,
                scope=job.scope,
                constraint=job.constraint,
            ),
            max_file_bytes=_MAX_FILE_BYTES,
        )
        attempt = next(attempts_of(plan, max_region_tokens=self._profile.max_region_tokens))
        prompts = build_prompts(plan, self._profile, regions=attempt.regions, scope=attempt.scope)
        started = time.perf_counter()
        handles = [self._running.submit(_request_of(prompt, job)) for prompt in prompts]
        ends = await asyncio.gather(*map(_follow, handles))
        total_s = time.perf_counter() - started
        if job.flush:
            await asyncio.to_thread(self._engine.wait_for_stores, _FLUSH_S)
        return _summarise(ends, total_s, prompts)


def _request_of(region: RegionPrompt, job: CacheJob) -> EngineRequest:
    prompt = region.prompt
    proposer = None
    if region.constraint is None:
        proposer = drafts_of(
            prompt,
            predicted_token_ids=region.predicted_token_ids,
            rival_token_ids=region.rival_token_ids,
        )
    return EngineRequest(
        request_id=uuid.uuid4().hex,
        prompt_token_ids=tuple(prompt.token_ids),
        sampling=SamplingParams(
            max_tokens=job.max_tokens or default_max_tokens(prompt),
            stop_token_ids=prompt.stop_token_ids,
        ),
        proposer=proposer,
        constraint=None if region.constraint is None else region.constraint.grammar(),
        cache_salt=job.salt.encode(),
    )


async def _follow(handle: RequestHandle) -> _End:
    started = time.perf_counter()
    token_ids: list[int] = []
    first_token_s = 0.0
    async for event in handle:
        if isinstance(event, Tokens):
            first_token_s = first_token_s or time.perf_counter() - started
            token_ids += event.token_ids
        elif isinstance(event, Finished):
            return _End(token_ids, first_token_s, event.stats)
    raise RuntimeError("the engine gave up on an edit")


def _summarise(
    ends: Sequence[_End],
    total_s: float,
    prompts: Sequence[RegionPrompt],
) -> CacheRun:
    stats = RequestStats.total([end.stats for end in ends])
    return CacheRun(
        token_ids=tuple(token_id for end in ends for token_id in end.token_ids),
        prompt_tokens=stats.num_prompt_tokens,
        cached_tokens=stats.num_cached_tokens,
        first_token_s=max(end.first_token_s for end in ends),
        load_s=max(end.stats.load_s for end in ends),
        total_s=total_s,
        decisions=tuple(f"{look.tier}:{look.decision}" for look in stats.prefix_lookups),
        prompts=tuple(tuple(region.prompt.token_ids) for region in prompts),
    )


if __name__ == "__main__":
    worker = CacheWorker(msgspec.json.decode(sys.argv[1], type=WorkerSettings))
    asyncio.run(worker.serve())
