"""Runs the server's pipeline in this process and times each of its parts."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from apply_service.apply.edit_request import EditRequest
from apply_service.apply.outcome import Outcome
from apply_service.apply.planning.text_work import TextWork
from apply_service.apply.run import ApplyPipeline, PipelineLimits
from apply_service.config import LoadedSettings, Settings, load_settings
from apply_service.evaluate.contenders.pipeline import FORESEEN_ERRORS
from apply_service.evaluate.machine import describe_machine
from apply_service.http.problems import problem_of
from apply_service.models.loading import load_to_stay, resolve_device
from apply_service.observe.progress import Progress
from apply_service.observe.request_record import RequestRecord, recording
from apply_service.service import LoadedModel
from batching.async_engine import AsyncEngine

_NS_PER_S = 1e9


class EditTiming(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one edit and the seconds of its parts.

    `plan_s`, `prompt_s` and `verdict_s` are those of text alone. `problem` is the code of the
    error that came instead of a status. Without `target_passes` no model was asked.
    """

    status: str = ""
    source: str = ""
    scope: str = ""
    problem: str = ""
    total_s: float
    plan_s: float = 0.0
    prompt_s: float = 0.0
    verdict_s: float = 0.0
    num_prompt_tokens: int = 0
    num_cached_tokens: int = 0
    num_output_tokens: int = 0
    target_passes: int = 0


class GroupTiming(msgspec.Struct, frozen=True, kw_only=True):
    """Edits that ran at the same time, seconds until all were done, and those of the engine.

    Of its steps `schedule_s` went to plans and drafts, `execute_s` to the model.
    """

    edits: tuple[EditTiming, ...]
    wall_s: float
    schedule_s: float
    execute_s: float


class EditSession:
    """Runs edits with the settings of a server. To be used as a block, which stops the engine."""

    def __init__(self, loaded: LoadedModel, settings: Settings) -> None:
        self.settings = settings
        self.model_name = loaded.name
        self.profile = loaded.profile
        self._runner = asyncio.Runner()
        self._engine = AsyncEngine(loaded.engine)
        self._text_work = TextWork(num_workers=settings.text_workers)
        self._pipeline = ApplyPipeline.on_engine(
            self._engine,
            loaded.profile,
            PipelineLimits(
                max_file_bytes=settings.max_file_bytes, max_draft_tokens=settings.max_draft_tokens
            ),
            text_work=self._text_work,
        )
        self._runner.run(self._start())

    @classmethod
    def load(cls, settings: Settings) -> EditSession:
        """Load the model as the server would. Raises ModelStoreError, PromptError, EngineError."""
        progress = Progress(sys.stderr)
        try:
            return cls(load_to_stay(settings, report=progress.show_stage), settings)
        finally:
            progress.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._runner.run(self._stop())
        self._runner.close()

    def run(self, edits: Sequence[EditRequest]) -> GroupTiming:
        """All edits at the same time, each from its text to its verdict."""
        return self._runner.run(self._run_together(edits))

    def describe(self) -> dict[str, Any]:
        """Model, settings that matter to time, and the machine, for a report."""
        settings, info = self.settings, self._engine.model_info
        machine = describe_machine(device=resolve_device(settings), dtype=info.dtype)
        return {
            **machine,
            "threads": settings.threads or machine["threads"],
            "model": self.model_name,
            "model_fingerprint": info.fingerprint,
            "profile": self.profile.name,
            "settings": {
                name: getattr(settings, name)
                for name in (
                    "max_draft_tokens",
                    "draft_budget",
                    "max_tokens_per_step",
                    "max_running",
                    "kv_memory",
                    "cache_memory",
                    "max_file_bytes",
                    "text_workers",
                    "use_model",
                )
            },
        }

    async def _start(self) -> None:
        self._engine.start()

    async def _stop(self) -> None:
        await self._text_work.close()
        await self._engine.stop()

    async def _run_together(self, edits: Sequence[EditRequest]) -> GroupTiming:
        before, started = self._engine.stats(), time.perf_counter()
        timings = await asyncio.gather(*(self._time(edit) for edit in edits))
        wall_s, after = time.perf_counter() - started, self._engine.stats()
        return GroupTiming(
            edits=tuple(timings),
            wall_s=wall_s,
            schedule_s=after.schedule_s - before.schedule_s,
            execute_s=after.execute_s - before.execute_s,
        )

    async def _time(self, edit: EditRequest) -> EditTiming:
        record = RequestRecord(keeps_stages=True)
        started = time.perf_counter()
        with recording(record):
            try:
                outcome = await self._pipeline.apply(edit)
            except FORESEEN_ERRORS as error:
                total_s = time.perf_counter() - started
                return EditTiming(problem=problem_of(error).code, total_s=total_s)
        return _timing_of(outcome, record, total_s=time.perf_counter() - started)


def _timing_of(outcome: Outcome, record: RequestRecord, *, total_s: float) -> EditTiming:
    seconds: defaultdict[str, float] = defaultdict(float)
    for stage in record.stages:
        seconds[stage.name] += (stage.end_ns - stage.start_ns) / _NS_PER_S
    stats = outcome.stats
    return EditTiming(
        status=outcome.verdict.status,
        source=outcome.source,
        scope=outcome.scope,
        total_s=total_s,
        plan_s=seconds["plan"],
        prompt_s=seconds["prompt"],
        verdict_s=seconds["verdict"],
        num_prompt_tokens=stats.num_prompt_tokens,
        num_cached_tokens=stats.num_cached_tokens,
        num_output_tokens=stats.num_output_tokens,
        target_passes=stats.target_passes,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions:
    """Settings of a session that were named; None leaves one to environment, file or default."""

    config: Path | None = None
    model: str | None = None
    profile: str | None = None
    dtype: str | None = None
    threads: str | None = None


def session_settings(options: SessionOptions) -> LoadedSettings:
    """The settings that a server would have: flags, environment, file. Raises ConfigError."""
    flags = {name: getattr(options, name) for name in ("model", "profile", "dtype", "threads")}
    return load_settings(flags=flags, environment=os.environ, config_path=options.config)
