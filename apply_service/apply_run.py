"""One edit under way: attempts from narrow to wide until a result can be trusted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace

from apply_service.conclusion import conclude, conclude_decided, try_conclude_merge, with_figures
from apply_service.confidence import confidence_of
from apply_service.edit.text_file import split_lines
from apply_service.edit.verdict import AnswerEnding
from apply_service.edit_plan import EditPlan
from apply_service.errors import DeadlineTooShortError, WithdrawnError
from apply_service.outcome import Outcome
from apply_service.prompts.profile import AnswerFormatError
from apply_service.region_prompt import PreparedAttempt, RegionPrompt
from apply_service.run_events import (
    RegionDone,
    RegionRestart,
    RegionStarted,
    RegionText,
    RunEvent,
)
from batching.async_engine import RequestHandle
from batching.errors import DeadlineExceededError, EngineError
from batching.events import Event, Failed, Finished, RequestStats, RowEvidence, Tokens

_RANKS = {"applied": 0, "unchanged": 1, "needs_review": 2, "rejected": 4}


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model wrote for one region, and what it thought of it under a constraint."""

    lines: tuple[str, ...]
    ending: AnswerEnding
    evidence: tuple[RowEvidence, ...] = ()


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


class ApplyRun:
    """One edit under way. Iterate for its events and, last, the outcome; then it is over.

    The texts of events are for the eye; the outcome alone is exact. `cancel` withdraws what is
    still running.
    """

    def __init__(self, plan: EditPlan, supply: AttemptSupply | None = None) -> None:
        """A run over the attempts of `supply`, the first of which is submitted by `begin`."""
        self._plan = plan
        self._supply = supply
        self._current: SubmittedAttempt | None = None
        self._stats: list[RequestStats] = []
        self._num_regions = 0

    async def begin(self) -> None:
        """Submit the first attempt. Raises ApplyError, PromptError or EngineError."""
        if self._supply is None:
            return
        prepared = await asyncio.to_thread(self._supply.prepare)
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
        """The outcome, without the events before it."""
        async for item in self:
            if isinstance(item, Outcome):
                return item
        raise WithdrawnError(f"the request {self.request_id} ended without an answer")

    async def __aiter__(self) -> AsyncIterator[RunEvent | Outcome]:
        if self._current is None:
            yield await asyncio.to_thread(conclude_decided, self._plan)
            return
        merged = await self._merged()
        best: Outcome | None = None
        while (submitted := self._current) is not None:
            start_index = self._num_regions
            answers: list[Answer] = []
            try:
                async for item in self._follow(submitted, answers):
                    yield item
            except DeadlineExceededError:
                if best is None and (merged is None or _rank(merged) > _RANKS["unchanged"]):
                    raise
                break
            outcome = await asyncio.to_thread(
                _conclude_attempt, self._plan, submitted.prepared, answers
            )
            best = _better(best, outcome)
            if _is_final(outcome) or not self._plan.edit.has_fallback:
                break
            if merged is not None and _rank(merged) <= _RANKS["unchanged"]:
                break
            self._current = await self._try_next()
            if self._current is not None:
                for index in range(start_index, self._num_regions):
                    yield RegionRestart(index)
        yield with_figures(_better(best, merged), self._plan, self._stats)

    async def _merged(self) -> Outcome | None:
        """The deterministic merge, if there is one and it is wanted."""
        if not self._plan.edit.has_fallback:
            return None
        return await asyncio.to_thread(try_conclude_merge, self._plan)

    async def _try_next(self) -> SubmittedAttempt | None:
        """A wider attempt, or None where neither time nor tokens nor room is left for one."""
        assert self._supply is not None, "a first attempt came from a supply"
        prepared = await asyncio.to_thread(self._supply.prepare)
        if prepared is None:
            return None
        try:
            return self._supply.submit(prepared)
        except (DeadlineTooShortError, EngineError):
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
            regions = [_RegionAnswer(prompt) for prompt in prompts]
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

    def _note(self, stats: RequestStats) -> None:
        self._stats.append(stats)
        if self._supply is not None:
            self._supply.observe(stats)


class _RegionAnswer:
    """The answer of one region while it comes in."""

    def __init__(self, region_prompt: RegionPrompt) -> None:
        self._prompt = region_prompt.prompt
        self._decoder = self._prompt.stream_decoder()
        self._token_ids: list[int] = []
        self._shown: list[str] = []
        self.answer: Answer | None = None

    def push(self, event: Event) -> str:
        """Take an event; text to show. Raises what ended the request early."""
        if isinstance(event, Tokens):
            self._token_ids.extend(event.token_ids)
            text = self._decoder.push(event.token_ids)
        elif isinstance(event, Finished):
            text = self._decoder.finish()
        elif isinstance(event, Failed):
            raise event.error
        else:
            raise WithdrawnError(f"the request {event.request_id} was cancelled")
        self._shown.append(text)
        if isinstance(event, Finished):
            answer = self._read(is_complete=event.reason == "stop")
            self.answer = replace(answer, evidence=event.evidence)
        return text

    def _read(self, *, is_complete: bool) -> Answer:
        """The lines of the answer; one that did not end properly is kept as the text it is."""
        ending: AnswerEnding = "complete" if is_complete else "length"
        if is_complete:
            try:
                return Answer(tuple(self._prompt.parse_answer(self._token_ids)), ending)
            except AnswerFormatError:
                ending = "malformed"
        return Answer(tuple(split_lines("".join(self._shown))[0]), ending)


async def _forward(
    handle: RequestHandle, place: int, arrived: asyncio.Queue[tuple[int, Event]]
) -> None:
    async for event in handle:
        arrived.put_nowait((place, event))


def _conclude_attempt(plan: EditPlan, prepared: PreparedAttempt, answers: list[Answer]) -> Outcome:
    """Splice the regions into the file and judge it."""
    lines: list[str] = []
    position = 0
    for region_prompt, answer in zip(prepared.prompts, answers, strict=True):
        region = region_prompt.region
        lines.extend(plan.original_lines[position : region.start])
        lines.extend(answer.lines)
        position = region.end
    lines.extend(plan.original_lines[position:])
    ending: AnswerEnding = "complete"
    for answer in answers:
        ending = ending if answer.ending == "complete" else answer.ending
    outcome = conclude(plan, tuple(lines), source="model", ending=ending)
    attempt = prepared.attempt
    outcome = replace(outcome, scope=attempt.scope, regions=attempt.regions)
    if all(region_prompt.constraint is None for region_prompt in prepared.prompts):
        return outcome
    evidence = tuple(row for answer in answers for row in answer.evidence)
    return replace(outcome, evidence=evidence, confidence=confidence_of(evidence))


def _better(first: Outcome | None, second: Outcome | None) -> Outcome:
    """The one with the milder verdict; of two alike the first."""
    outcomes = [outcome for outcome in (first, second) if outcome is not None]
    return min(outcomes, key=_rank)


def _rank(outcome: Outcome) -> int:
    """How bad a verdict is; a valid merge whose place is in doubt comes before what is none."""
    is_broken = any(finding.code == "not_a_merge" for finding in outcome.verdict.findings)
    rank = _RANKS[outcome.verdict.status]
    return rank + 1 if is_broken and rank < _RANKS["rejected"] else rank


def _is_final(outcome: Outcome) -> bool:
    """Whether a wider attempt could not make it better: an open place stays open."""
    return _rank(outcome) <= _RANKS["needs_review"] and outcome.verdict.status != "unchanged"
