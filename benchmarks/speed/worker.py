"""Our engine in a process of its own, as a contender of `benchmarks speed`."""

from __future__ import annotations

import asyncio
import sys
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TextIO

import msgspec

from apply_service.apply.engine_requests import drafts_of
from apply_service.evaluate.cases.case_file import Case
from apply_service.evaluate.machine import package_versions
from apply_service.models.store import cache_dir
from apply_service.prompts.profile import Profile, load_profile
from batching.async_engine import AsyncEngine
from batching.config import DraftBudgetMode, EngineConfig
from batching.engine import build_engine
from batching.events import Finished, Tokens
from batching.request import EngineRequest, SamplingParams
from benchmarks.speed.case import SpeedCase, try_prepare
from benchmarks.speed.run import SpeedRun, WorkerFacts


class SpeedWorkerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a process of ours loads. Without `max_draft_tokens` speculation is off."""

    model_dir: str
    profile: str
    num_threads: int | None
    draft_budget: DraftBudgetMode
    max_draft_tokens: int


class SpeedJob(msgspec.Struct, frozen=True, kw_only=True):
    """A case to be written, at most `max_tokens` of it; None for all."""

    case: Case
    max_tokens: int | None


class SpeedWorker:
    """Runs one case at a time, with nothing of earlier ones in its prefix cache."""

    def __init__(self, settings: SpeedWorkerSettings) -> None:
        """Load the model; the engine has not been started yet."""
        self._settings = settings
        self._profile: Profile = load_profile(settings.profile, Path(settings.model_dir))
        self._engine = AsyncEngine(
            build_engine(
                EngineConfig(
                    model_path=Path(settings.model_dir),
                    num_threads=settings.num_threads,
                    draft_budget=settings.draft_budget,
                    step_cost_dir=cache_dir() / "step-costs",
                )
            )
        )

    @property
    def facts(self) -> WorkerFacts:
        """What it runs, and the longest context that it takes."""
        info = self._engine.model_info
        return WorkerFacts(
            dtype=info.dtype,
            versions=package_versions(),
            max_position=min(info.max_position, info.num_kv_tokens),
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The engine runs for the length of the block."""
        self._engine.start()
        try:
            yield
        finally:
            await self._engine.stop()

    async def serve(self, answers: TextIO) -> None:
        """Answer jobs of stdin, a JSON object a line, until it ends."""
        async with self.running():
            print(msgspec.json.encode(self.facts).decode(), file=answers, flush=True)
            while line := await asyncio.to_thread(sys.stdin.readline):
                run = await self.run(msgspec.json.decode(line, type=SpeedJob))
                print(msgspec.json.encode(run).decode(), file=answers, flush=True)

    async def run(self, job: SpeedJob) -> SpeedRun:
        """One case on an idle engine; planning it and building the prompt are in the time."""
        started = time.perf_counter()
        prepared = try_prepare(job.case, self._profile, max_tokens=job.max_tokens)
        assert prepared is not None, "only cases that can be prepared are run"
        handle = self._engine.submit(self._request_of(prepared))
        token_ids: list[int] = []
        first_token_s, num_first_tokens = None, 0
        async for event in handle:
            if isinstance(event, Tokens):
                if first_token_s is None:
                    first_token_s = time.perf_counter() - started
                    num_first_tokens = len(event.token_ids)
                token_ids += event.token_ids
            elif isinstance(event, Finished):
                return SpeedRun(
                    token_ids=tuple(token_ids),
                    seconds=time.perf_counter() - started,
                    first_token_s=first_token_s,
                    num_first_tokens=num_first_tokens,
                    stats=event.stats,
                )
        raise RuntimeError(f"the engine gave up on case {job.case.id}")

    def _request_of(self, prepared: SpeedCase) -> EngineRequest:
        prompt, max_draft_tokens = prepared.prompt, self._settings.max_draft_tokens
        proposer = None
        if max_draft_tokens:
            proposer = drafts_of(
                prompt,
                predicted_token_ids=prepared.predicted_token_ids,
                rival_token_ids=prepared.rival_token_ids,
            )
        request_id = uuid.uuid4().hex
        return EngineRequest(
            request_id=request_id,
            prompt_token_ids=tuple(prompt.token_ids),
            sampling=SamplingParams(
                max_tokens=prepared.max_tokens, stop_token_ids=prompt.stop_token_ids
            ),
            proposer=proposer,
            max_draft_tokens=max_draft_tokens,
            cache_salt=request_id.encode(),
        )


if __name__ == "__main__":
    # Answers have stdout for themselves; what a library prints goes to stderr.
    own_stdout, sys.stdout = sys.stdout, sys.stderr
    worker = SpeedWorker(msgspec.json.decode(sys.argv[1], type=SpeedWorkerSettings))
    asyncio.run(worker.serve(own_stdout))
