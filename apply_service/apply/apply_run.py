"""One edit under way: attempts from narrow to wide until a result can be trusted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Protocol

from apply_service.apply.conclusion import (
    conclude,
    try_conclude_merge,
    with_figures,
    without_constraint,
    without_retry,
)
from apply_service.apply.confidence import Testimony
from apply_service.apply.edit_request import EditRequest
from apply_service.apply.errors import WithdrawnError
from apply_service.apply.outcome import Outcome
from apply_service.apply.planning.edit_plan import EditPlan
from apply_service.apply.planning.text_work import TextWork, WorkTerms
from apply_service.apply.region_answer import Answer, AnswerReader
from apply_service.apply.region_prompt import PreparedAttempt
from apply_service.apply.run_events import (
    RegionDone,
    RegionRestart,
    RegionStarted,
    RegionText,
    RunEvent,
)
from apply_service.edit.place.verdict import AnswerEnding
from apply_service.observe.request_record import stage
from batching.async_engine import RequestHandle
from batching.errors import DeadlineExceededError, EngineError
from batching.events import Event, Finished, RequestStats

_RANKS = {"applied": 0, "unchanged": 1, "needs_review": 2, "rejected": 4}


@dataclass(frozen=True, slots=True)
class SubmittedAttempt:
    """An attempt whose requests the engine has taken, one a region."""

    prepared: PreparedAttempt
    handles: tuple[RequestHandle, ...]


@dataclass(frozen=True, slots=True)
class AttemptSupply:
    """Where attempts come from.

    `prepare` gives the next one that fits the model, None after the last; it may take a while and
    runs beside the event loop. `submit` hands one to the engine, on the event loop. `observe`
    takes the figures of each finished request.
    """

    prepare: Callable[[], PreparedAttempt | None]
    submit: Callable[[PreparedAttempt], SubmittedAttempt]
    observe: Callable[[RequestStats], None]


@dataclass(frozen=True, slots=True)
class _Spliced:
    """A whole file with the model's answers in it, how they ended, and what it said of them."""

    lines: tuple[str, ...]
    ending: AnswerEnding
    testimony: Testimony | None


class RunObserver(Protocol):
    """Told what runs come to, on the event loop."""

    def observe_request(self, stats: RequestStats) -> None:
        """A request to the engine finished."""

    def observe_outcome(self, outcome: Outcome) -> None:
        """A run has its outcome."""


class ApplyRun:
    """One edit under way. Iterate for its events and, last, the outcome; then it is over.

    The texts of events are for the eye; the outcome alone is exact. `cancel` withdraws what is
    still running.
    """

    def __init__(
        self,
        plan: EditPlan,
        supply: AttemptSupply | None = None,
        *,
        decided: Outcome | None = None,
        observer: RunObserver | None = None,
        text_work: TextWork | None = None,
    ) -> None:
        """A run over the attempts of `supply`, the first of which is submitted by `begin`.

        Or one that asks no model, because its outcome is decided.
        """
        assert (supply is None) != (decided is None), "an outcome is decided, or to be found"
        self._plan = plan
        self._terms = WorkTerms.of(plan.edit, started_at=plan.started_at)
        self._supply = supply
        self._decided = decided
        self._observer = observer
        self._text_work = text_work or TextWork()
        self._current: SubmittedAttempt | None = None
        self._stats: list[RequestStats] = []
        self._num_regions = 0
        self._merge: list[Outcome | None] = []
        self._dropped_for: EngineError | None = None

    async def begin(self) -> None:
        """Submit the first attempt. Raises ApplyError, PromptError or EngineError."""
        if self._supply is None:
            return
        with stage("prompt"):
            prepared = await self._text_work.run_here(self._terms, self._supply.prepare)
        assert prepared is not None, "there is a first attempt, or an error that says why not"
        self._current = self._supply.submit(prepared)

    @property
    def request_id(self) -> str:
        """The name of the request in answers and logs."""
        return self._plan.request_id

    def cancel(self) -> None:
        """Give the request up; nothing more has to be read."""
        for handle in () if self._current is None else self._current.handles:
            handle.cancel()

    async def outcome(self) -> Outcome:
        """The outcome, without the events before it; whatever ends the waiting ends the run."""
        try:
            async for item in self:
                if isinstance(item, Outcome):
                    return item
        finally:
            self.cancel()
        raise WithdrawnError(f"the request {self.request_id} ended without an answer")

    async def __aiter__(self) -> AsyncIterator[RunEvent | Outcome]:
        if self._decided is not None:
            yield self._told(self._decided)
            return
        if self._plan.edit.deadline_s is not None:
            await self._merged()  # there is no time for it when there is no time left
        best: Outcome | None = None
        is_merge_wanted = True
        while (submitted := self._current) is not None:
            start_index = self._num_regions
            answers: list[Answer] = []
            try:
                async for item in self._follow(submitted, answers):
                    yield item
                with stage("verdict"):
                    outcome = await self._conclude(submitted.prepared, answers)
            except DeadlineExceededError as error:
                if best is None and not _is_good(await self._merged()):
                    raise with_cap(error, self._plan.edit) from error
                self._dropped_for = error
                for restart in self._restarts(start_index):
                    yield restart
                break
            if _is_over_ceiling(self._plan, answers):
                best, is_merge_wanted = outcome, False
                break
            best = _better(best, outcome)
            if _rank(best) == _RANKS["applied"]:
                break
            if outcome.confidence is not None and _has_same_text(outcome, await self._merged()):
                is_merge_wanted = False  # the same merge, of which less is known
            if _is_final(outcome) or not self._plan.edit.has_fallback:
                break
            if is_merge_wanted and _is_good(await self._merged()):
                break
            self._current = await self._try_next()
            if self._current is not None:
                for restart in self._restarts(start_index):
                    yield restart
        is_best = best is not None and _rank(best) == _RANKS["applied"]
        merged = await self._merged() if is_merge_wanted and not is_best else None
        outcome = with_figures(_better(best, merged), self._plan, self._stats)
        if self._dropped_for is not None:
            is_late = isinstance(self._dropped_for, DeadlineExceededError)
            outcome = without_retry(outcome, is_late=is_late)
        yield self._told(outcome)

    def _restarts(self, start_index: int) -> list[RegionRestart]:
        """That all regions from one on are to be forgotten."""
        return [RegionRestart(index) for index in range(start_index, self._num_regions)]

    async def _merged(self) -> Outcome | None:
        """The deterministic merge, if there is one and it is wanted; judged when first asked for.

        Judged beside the model's work it would take from that a part of the processor.
        """
        if not self._plan.edit.has_fallback:
            return None
        if not self._merge:
            work = self._text_work.run(self._terms, try_conclude_merge, self._plan)
            self._merge.append(await work)
        return self._merge[0]

    async def _conclude(self, prepared: PreparedAttempt, answers: list[Answer]) -> Outcome:
        """The outcome of an attempt whose regions have all been answered."""
        spliced = await self._text_work.run_here(self._terms, _splice_answers, self._plan, answers)
        outcome = await self._text_work.run(
            self._terms,
            conclude,
            self._plan,
            spliced.lines,
            source="model",
            ending=spliced.ending,
            testimony=spliced.testimony,
        )
        attempt = prepared.attempt
        outcome = replace(outcome, scope=attempt.scope, regions=attempt.regions)
        return without_constraint(outcome) if prepared.lacks_constraint else outcome

    async def _try_next(self) -> SubmittedAttempt | None:
        """A wider attempt, or None where neither time nor tokens nor room is left for one."""
        assert self._supply is not None, "a first attempt came from a supply"
        try:
            with stage("prompt"):
                prepared = await self._text_work.run_here(self._terms, self._supply.prepare)
            return None if prepared is None else self._supply.submit(prepared)
        except EngineError as error:
            self._dropped_for = error
            return None

    async def _follow(
        self, submitted: SubmittedAttempt, answers: list[Answer]
    ) -> AsyncIterator[RunEvent]:
        """Events of all regions of an attempt, as they come; fills `answers` in their order."""
        start_index = self._num_regions
        prompts = submitted.prepared.prompts
        self._num_regions += len(prompts)
        for index, prompt in enumerate(prompts, start=start_index):
            yield RegionStarted(index, prompt.region.start, prompt.region.end)
        arrived: asyncio.Queue[tuple[int, Event]] = asyncio.Queue()
        readers = [
            asyncio.create_task(_forward(handle, place, arrived))
            for place, handle in enumerate(submitted.handles)
        ]
        try:
            regions = [AnswerReader(prompt) for prompt in prompts]
            while any(region.answer is None for region in regions):
                place, event = await arrived.get()
                text = regions[place].push(event)
                if text:
                    yield RegionText(start_index + place, text)
                if isinstance(event, Finished):
                    self._note(event.stats)
                    yield RegionDone(start_index + place)
            answers.extend(region.answer for region in regions if region.answer is not None)
        finally:
            for handle in submitted.handles:
                handle.cancel()
            for reader in readers:
                reader.cancel()

    def _told(self, outcome: Outcome) -> Outcome:
        """The outcome, of which the observer knows."""
        if self._observer is not None:
            self._observer.observe_outcome(outcome)
        return outcome

    def _note(self, stats: RequestStats) -> None:
        self._stats.append(stats)
        if self._supply is not None:
            self._supply.observe(stats)
        if self._observer is not None:
            self._observer.observe_request(stats)


async def _forward(
    handle: RequestHandle, place: int, arrived: asyncio.Queue[tuple[int, Event]]
) -> None:
    async for event in handle:
        arrived.put_nowait((place, event))


def with_cap(error: DeadlineExceededError, edit: EditRequest) -> DeadlineExceededError:
    """The error, which tells a caller who asked for more time why there was no more."""
    if not edit.is_deadline_capped:
        return error
    return DeadlineExceededError(
        f"{error}; deadline_s asked for more than the {edit.deadline_s:g} s that this server"
        " gives an edit (max_deadline_s)"
    )


def _is_over_ceiling(plan: EditPlan, answers: list[Answer]) -> bool:
    """Whether a try needs more tokens than the caller allows."""
    ceiling = plan.edit.max_answer_tokens
    if ceiling is None:
        return False
    sizes = [len(answer.token_ids) for answer in answers]
    is_cut = any(
        answer.ending == "length" and size >= ceiling
        for answer, size in zip(answers, sizes, strict=True)
    )
    return is_cut or sum(sizes) > ceiling


def _splice_answers(plan: EditPlan, answers: list[Answer]) -> _Spliced:
    """Put the answers of all regions, in order, into the file."""
    lines: list[str] = []
    position = 0
    testimonies: list[Testimony] = []
    ending: AnswerEnding = "complete"
    for answer in answers:
        region = answer.region_prompt.region
        lines.extend(plan.original_lines[position : region.start])
        testimony = answer.testimony(plan, first_line=len(lines))
        if testimony is not None:
            testimonies.append(testimony)
        lines.extend(answer.lines)
        position = region.end
        ending = ending if answer.ending == "complete" else answer.ending
    if _is_over_ceiling(plan, answers):
        ending = "length"
    lines.extend(plan.original_lines[position:])
    has_all = len(testimonies) == len(answers)
    return _Spliced(tuple(lines), ending, Testimony.total(testimonies) if has_all else None)


def _better(first: Outcome | None, second: Outcome | None) -> Outcome:
    """The one with the milder verdict; of two alike the first."""
    outcomes = [outcome for outcome in (first, second) if outcome is not None]
    return min(outcomes, key=_rank)


def _is_good(outcome: Outcome | None) -> bool:
    return outcome is not None and _rank(outcome) <= _RANKS["unchanged"]


def _has_same_text(outcome: Outcome, merged: Outcome | None) -> bool:
    return merged is not None and outcome.lines == merged.lines


def _rank(outcome: Outcome) -> int:
    """How bad a verdict is; a valid merge whose place is in doubt comes before what is none."""
    is_broken = any(finding.code == "not_a_merge" for finding in outcome.verdict.findings)
    rank = _RANKS[outcome.verdict.status]
    return rank + 1 if is_broken and rank < _RANKS["rejected"] else rank


def _is_final(outcome: Outcome) -> bool:
    """Whether a wider attempt could not make it better: an open place stays open."""
    return _rank(outcome) <= _RANKS["needs_review"] and outcome.verdict.status != "unchanged"
