"""One edit from its request to its outcome, as one coroutine for all callers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, Self

from apply_service.apply.admission import Admission
from apply_service.apply.answer import Answer, AnswerReader, splice_answers
from apply_service.apply.attempt import Attempt
from apply_service.apply.conclusion import (
    conclude,
    try_conclude_merge,
    try_conclude_unasked,
    with_figures,
    without_retry,
)
from apply_service.apply.decoding_trace import RegionTrace, text_steps
from apply_service.apply.edit_model import AskedAttempt, EditModel
from apply_service.apply.edit_request import EditRequest
from apply_service.apply.errors import ApplyError, DoubtfulUpdateError, PromptTooLongError
from apply_service.apply.events import NO_READER, EventSink, RegionDone, RegionText
from apply_service.apply.intake import Intake
from apply_service.apply.judge.second_opinion import Asks, SecondOpinion
from apply_service.apply.outcome import Outcome
from apply_service.apply.planning.edit_plan import EditPlan
from apply_service.apply.planning.text_work import TextWork, WorkTerms
from apply_service.apply.run_state import RunState, is_final, is_good
from apply_service.apply.writer.writing import Writing
from apply_service.observe.request_record import stage
from apply_service.prompts.profile import Profile
from batching.async_engine import AsyncEngine, RequestHandle
from batching.errors import DeadlineExceededError, EngineError
from batching.events import Event, Finished, RequestStats
from batching.request import Priority


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineLimits:
    """Limits of one request; `max_draft_tokens` is both the default and the maximum.

    With `allows_lossy` drafts may pass that the model would not have written.
    """

    max_file_bytes: int
    max_draft_tokens: int
    allows_lossy: bool = False


class ModelProvider(Protocol):
    """Gives a run its model."""

    async def model_for(self, plan: EditPlan) -> EditModel:
        """The model that a plan needs, waiting until its deadline. Raises ApplyError."""


class RunObserver(Protocol):
    """Hears of finished requests and outcomes, on the event loop."""

    def observe_request(self, stats: RequestStats) -> None:
        """Record that a request to the engine finished."""

    def observe_outcome(self, outcome: Outcome) -> None:
        """Record the outcome of a run."""


class ApplyPipeline:
    """Runs edits, each as one coroutine. Cancelling the coroutine withdraws what is running.

    `intake` plans edits, and `text_work` is where their texts are worked on. `observer` is told of
    every request to the engine that finishes and of every outcome, once. `writing` may write where
    the model would be asked, and `second_opinion` settle a doubt before the caller is asked. Of all
    edits in batch priority prompts are written for one at a time, so that others find a thread
    free.
    """

    def __init__(
        self,
        models: ModelProvider,
        intake: Intake,
        *,
        text_work: TextWork,
        observer: RunObserver | None = None,
        second_opinion: SecondOpinion | None = None,
        writing: Writing | None = None,
    ) -> None:
        self._models = models
        self._intake = intake
        self._text_work = text_work
        self._observer = observer
        self._second_opinion = second_opinion
        self._writing = writing
        self._batch_turn = asyncio.Semaphore(1)

    @classmethod
    def on_engine(
        cls,
        engine: AsyncEngine,
        profile: Profile,
        limits: PipelineLimits,
        *,
        text_work: TextWork | None = None,
        judge: Asks | None = None,
    ) -> Self:
        """Edits on one running engine; texts are worked on in threads by default."""
        text_work = text_work or TextWork()
        model = EditModel(
            engine,
            profile,
            admission=Admission(engine),
            max_draft_tokens=limits.max_draft_tokens,
        )
        intake = Intake(max_file_bytes=limits.max_file_bytes, text_work=text_work)
        second_opinion = None if judge is None else SecondOpinion(judge, text_work)
        return cls(model, intake, text_work=text_work, second_opinion=second_opinion)

    async def apply(self, edit: EditRequest, events: EventSink = NO_READER) -> Outcome:
        """Plan an edit and run it.

        Raises ApplyError, SnippetError, TextFileError, PromptError or EngineError. Before the first
        event nothing has been computed.
        """
        started_at = time.monotonic()
        with _cap_explained(edit):
            try:
                plan = await self._intake.plan(edit)
            except DoubtfulUpdateError as error:
                if edit.deadline_s is not None:
                    left_s = edit.deadline_s - (time.monotonic() - started_at)
                    edit = replace(edit, deadline_s=left_s)
                return await self._settle_unplaced(edit, error)
            return await self.run(plan, events)

    async def run(self, plan: EditPlan, events: EventSink = NO_READER) -> Outcome:
        """The outcome of a plan, with a model or without. Raises as `apply` does."""
        outcome = await self._intake.try_alone(plan)
        if outcome is None and self._writing is not None:
            outcome = await self._writing.on(plan, events)
            if outcome is None:
                plan = self._writing.without(plan)
                outcome = await self._intake.try_alone(plan)
        if outcome is None:
            outcome = await self._ask(plan, events)
        outcome = await self._intake.settle(plan, outcome)
        if self._second_opinion is not None:
            outcome = await self._second_opinion.on(plan, outcome)
        return self._observed(outcome)

    async def _settle_unplaced(self, edit: EditRequest, error: DoubtfulUpdateError) -> Outcome:
        """What a judge makes of an update that does not say where it belongs. Raises `error`."""
        opinion = self._second_opinion
        if opinion is None or not (edit.may_ask_judge and edit.on_doubt == "ask"):
            raise error
        outcome: Outcome | None = None
        with suppress(ApplyError, EngineError):
            # Any choice makes a plan with all merges; none of them is taken for chosen.
            plan = await self._intake.plan(replace(edit, resolve=error.choices[0].id))
            plan = replace(plan, edit=replace(edit, use_model="never"))
            outcome = await self._intake.try_alone(plan)
            if outcome is not None:
                outcome = await opinion.on(plan, await self._intake.settle(plan, outcome))
        if outcome is None or outcome.source != "judge":
            raise error
        return self._observed(outcome)

    async def _ask(self, plan: EditPlan, events: EventSink) -> Outcome:
        """Ask the model, from narrow to wide, until its answer or the merge is good enough."""
        model = await self._models.model_for(plan)
        run = RunState(plan, WorkTerms.of(plan.edit, started_at=plan.started_at), events)
        try:
            async with aclosing(self._attempts(run, model)) as attempts:
                async for attempt in attempts:
                    answers = await self._answer(run, model, attempt)
                    outcome = await self._judge(run, attempt, answers)
                    if await self._is_enough(run, outcome):
                        break
        except PromptTooLongError as error:
            return await self._without_model(run, error)
        except DeadlineExceededError as error:
            if not run.has_fallback:
                raise
            run.dropped_for = error
            run.forget_regions()
        return await self._conclude(run)

    async def _attempts(
        self, run: RunState, model: EditModel
    ) -> AsyncGenerator[AskedAttempt, None]:
        """The attempts of a plan, from narrow to wide.

        Each is submitted when it is asked for and withdrawn when it is left. No more come where
        neither time nor tokens nor room is left for a wider one. Raises ApplyError, PromptError or
        EngineError for the first.
        """
        prepared = model.attempts(run.plan)
        while True:
            try:
                asked = await self._try_submit(run, model, prepared)
            except EngineError as error:
                if not run.has_begun:
                    raise
                run.dropped_for = error
                return
            if asked is None:
                return
            try:
                run.begin(asked.attempt)
                if run.plan.edit.deadline_s is not None:
                    await self._merge(run)  # no time is left for it when no time is left
                yield asked
            finally:
                asked.cancel()

    async def _try_submit(
        self, run: RunState, model: EditModel, prepared: Iterator[Attempt]
    ) -> AskedAttempt | None:
        """The next attempt, with its requests in the engine; None after the last."""
        is_batch = run.plan.edit.priority == Priority.BATCH
        async with self._batch_turn if is_batch else nullcontext():
            with stage("prompt"):
                attempt = await self._text_work.run_here(run.terms, partial(next, prepared, None))
            return None if attempt is None else model.submit(run.plan, attempt)

    async def _answer(self, run: RunState, model: EditModel, asked: AskedAttempt) -> list[Answer]:
        """The model's answers for the regions of an attempt, in order; each piece is an event."""
        arrived: asyncio.Queue[tuple[int, Event]] = asyncio.Queue()
        forwarding = [
            asyncio.create_task(_forward(handle, place, arrived))
            for place, handle in enumerate(asked.handles)
        ]
        readers = [AnswerReader(prompt) for prompt in asked.attempt.prompts]
        asked_s = run.seconds_since_first_asked(asked.asked_at)
        try:
            while any(reader.answer is None for reader in readers):
                place, event = await arrived.get()
                text = readers[place].push(event)
                if text:
                    run.events.put(RegionText(run.regions[place], text))
                if isinstance(event, Finished):
                    run.stats.append(event.stats)
                    if event.trace:
                        tokenizer = asked.attempt.prompts[place].prompt.tokenizer
                        steps = text_steps(event.trace, tokenizer, asked_s=asked_s)
                        run.traces.append(RegionTrace(run.regions[place], steps))
                    self._observe(model, event.stats)
                    run.events.put(RegionDone(run.regions[place]))
        finally:
            for task in forwarding:
                task.cancel()
        return [reader.answer for reader in readers if reader.answer is not None]

    async def _judge(self, run: RunState, asked: AskedAttempt, answers: list[Answer]) -> Outcome:
        """The outcome of an attempt with these answers."""
        with stage("verdict"):
            attempt = await self._text_work.run_here(
                run.terms, splice_answers, run.plan, asked.attempt, answers
            )
            outcome = await self._text_work.run(run.terms, conclude, run.plan, attempt)
        run.add_outcome(attempt, outcome)
        return outcome

    async def _is_enough(self, run: RunState, outcome: Outcome) -> bool:
        """True if no wider attempt is wanted after this outcome, or none could be better."""
        if run.is_over_ceiling or run.is_applied:
            return True
        if outcome.confidence is not None:
            merge = await self._merge(run)
            if merge is not None and merge.lines == outcome.lines:
                run.is_merge_wanted = False  # the same merge, of which less is known
        if is_final(outcome) or not run.plan.edit.has_fallback:
            return True
        return run.is_merge_wanted and is_good(await self._merge(run))

    async def _merge(self, run: RunState) -> Outcome | None:
        """The deterministic merge, if there is one and it is wanted; judged on first use.

        Judging it beside the model's work would slow that down.
        """
        if run.plan.edit.has_fallback and not run.is_merge_judged:
            run.add_merge(await self._text_work.run(run.terms, try_conclude_merge, run.plan))
        return run.merge

    async def _conclude(self, run: RunState) -> Outcome:
        """The best outcome of all attempts and the merge, with the figures of the whole run."""
        if run.is_merge_wanted and not run.is_applied:
            await self._merge(run)
        outcome = with_figures(run.result, run.plan, run.stats)
        if run.traces:
            outcome = replace(outcome, traces=tuple(run.traces))
        if run.dropped_for is None:
            return outcome
        is_late = isinstance(run.dropped_for, DeadlineExceededError)
        return without_retry(outcome, is_late=is_late)

    async def _without_model(self, run: RunState, reason: PromptTooLongError) -> Outcome:
        """The deterministic merge of an edit that no prompt fits. Raises `reason` if none."""
        with stage("verdict"):
            merged = await self._text_work.run(run.terms, try_conclude_unasked, run.plan, reason)
        if merged is None:
            raise reason
        return merged

    def _observed(self, outcome: Outcome) -> Outcome:
        if self._observer is not None:
            self._observer.observe_outcome(outcome)
        return outcome

    def _observe(self, model: EditModel, stats: RequestStats) -> None:
        model.observe(stats)
        if self._observer is not None:
            self._observer.observe_request(stats)


async def _forward(
    handle: RequestHandle, place: int, arrived: asyncio.Queue[tuple[int, Event]]
) -> None:
    async for event in handle:
        arrived.put_nowait((place, event))


@contextmanager
def _cap_explained(edit: EditRequest) -> Iterator[None]:
    """Tell a caller who asked for more time that the server capped it."""
    try:
        yield
    except DeadlineExceededError as error:
        if not edit.is_deadline_capped:
            raise
        raise DeadlineExceededError(
            f"{error}; deadline_s is over the {edit.deadline_s:g} s that this server allows"
            " (max_deadline_s)"
        ) from error
