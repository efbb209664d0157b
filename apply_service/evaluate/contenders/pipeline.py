"""The whole pipeline as a contender: prompt, engine, verdict and fallback, in this process."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from dataclasses import dataclass, replace

from apply_service.apply.edit_request import Constraint, UseModel
from apply_service.apply.errors import ApplyError
from apply_service.apply.events import RegionText, RunEvent
from apply_service.apply.outcome import Outcome
from apply_service.apply.run import ApplyPipeline, PipelineLimits
from apply_service.config import load_settings
from apply_service.edit.read.snippet_error import SnippetError
from apply_service.edit.text.text_file import TextFileError
from apply_service.evaluate.cases.case_file import Case
from apply_service.evaluate.cases.case_result import CaseAnswer, notes_of
from apply_service.evaluate.cases.planned_case import edit_of_case
from apply_service.http.problems import problem_of
from apply_service.models.loading import load_served_model
from apply_service.observe.progress import Progress
from apply_service.prompts.errors import PromptError
from apply_service.service import LoadedModel
from batching.async_engine import AsyncEngine
from batching.config import Dtype
from batching.errors import EngineError

# What an edit can come to instead of an outcome.
FORESEEN_ERRORS = (ApplyError, SnippetError, TextFileError, PromptError, EngineError)
# Problems that say something about the update; all others say that there was no judgement.
_REFUSED_STATUSES = (400, 422)


@dataclass(slots=True)
class _FirstText:
    """A sink that notes after how many seconds the first text came."""

    started: float
    seconds: float | None = None

    def put(self, event: RunEvent) -> None:
        """Look at the clock at the first text."""
        if self.seconds is None and isinstance(event, RegionText):
            self.seconds = time.perf_counter() - self.started


class PipelineContender:
    """Answers with the pipeline that the server runs, one case at a time.

    Without `has_fallback` the model's own answer is judged, whatever the deterministic merge says.
    The model is asked about each case, unless `use_model` leaves it out where it is not needed.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        limits: PipelineLimits,
        *,
        has_fallback: bool,
        constraint: Constraint | None = None,
        use_model: UseModel = "always",
    ) -> None:
        self.name = f"{loaded.name}{'' if has_fallback else ', without fallback'}"
        self._has_fallback = has_fallback
        self._constraint = constraint
        self._use_model = use_model
        self._runner = asyncio.Runner()
        self._engine = AsyncEngine(loaded.engine)
        self._runner.run(self._start())
        self._pipeline = ApplyPipeline.on_engine(self._engine, loaded.profile, limits)

    @property
    def dtype(self) -> Dtype:
        """The model's number format."""
        return self._engine.model_info.dtype

    def answer(self, case: Case, *, cache_salt: bytes = b"") -> CaseAnswer:
        """The outcome of one edit, or the problem that the pipeline has with it.

        Edits of the same salt share what was computed for them.
        """
        try:
            outcome, first_text_s = self._runner.run(self._outcome(case, cache_salt))
        except FORESEEN_ERRORS as error:
            problem = problem_of(error)
            is_refused = problem.status in _REFUSED_STATUSES
            return CaseAnswer(
                status="rejected" if is_refused else "failed", notes=(problem.detail,)
            )
        return CaseAnswer(
            status=outcome.verdict.status,
            text=outcome.merged,
            notes=notes_of(outcome.verdict.findings),
            source=outcome.source,
            seconds=outcome.total_s,
            first_text_s=first_text_s,
            num_output_tokens=outcome.stats.num_output_tokens,
            num_target_passes=outcome.stats.target_passes,
            num_forced_tokens=outcome.stats.forced,
            num_decisions=None if outcome.confidence is None else len(outcome.decisions),
        )

    def close(self) -> None:
        """Stop the engine."""
        self._runner.run(self._engine.stop())
        self._runner.close()

    async def _start(self) -> None:
        self._engine.start()

    async def _outcome(self, case: Case, cache_salt: bytes) -> tuple[Outcome, float | None]:
        """What came of an edit, and after how many seconds its first text came, if any did."""
        edit = edit_of_case(
            case,
            has_fallback=self._has_fallback,
            constraint=self._constraint,
            use_model=self._use_model,
        )
        watch = _FirstText(time.perf_counter())
        outcome = await self._pipeline.apply(replace(edit, cache_salt=cache_salt), watch)
        return outcome, watch.seconds


def load_contender(
    *,
    model: str | None,
    threads: str | None,
    has_fallback: bool,
    constraint: Constraint | None = None,
    profile: str | None = None,
    use_model: UseModel | None = "always",
) -> PipelineContender:
    """Load the model as the server would; None takes what the environment sets.

    Raises ConfigError, ModelStoreError, PromptError or EngineError.
    """
    flags = {"model": model, "profile": profile, "threads": threads}
    settings = load_settings(flags=flags, environment=os.environ).settings
    progress = Progress(sys.stderr)
    try:
        loaded = load_served_model(settings, report=progress.show_stage)
    finally:
        progress.clear()
    limits = PipelineLimits(
        max_file_bytes=settings.max_file_bytes, max_draft_tokens=settings.max_draft_tokens
    )
    return PipelineContender(
        loaded,
        limits,
        has_fallback=has_fallback,
        constraint=constraint,
        use_model=settings.use_model if use_model is None else use_model,
    )
