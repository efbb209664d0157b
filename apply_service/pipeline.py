"""The way of one edit: text → prompt → engine → answer → file → verdict. HTTP and CLI share it."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

from apply_service.edit.diff import unified_diff
from apply_service.edit.markers import MarkerReader, split_segments, strip_fence
from apply_service.edit.text_file import TextFile, check_no_lone_surrogate, split_lines
from apply_service.edit.verdict import AnswerEnding, judge
from apply_service.edit_request import EditRequest
from apply_service.engine_requests import default_max_tokens, make_proposer
from apply_service.errors import (
    EmptyUpdateError,
    FileTooLargeError,
    MarkersWithoutFileError,
    PromptTooLongError,
    WithdrawnError,
)
from apply_service.outcome import Outcome, Source
from apply_service.prompts.profile import AnswerFormatError, Profile, Prompt, PromptRequest
from batching.async_engine import AsyncEngine, RequestHandle
from batching.events import Failed, Finished, RequestStats, Tokens
from batching.request import EngineRequest, SamplingParams


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineLimits:
    """Limits of one request; `max_draft_tokens` is the default and the most a request may ask."""

    max_file_bytes: int
    max_draft_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EditPlan:
    """An edit ready for the engine, or with `source` other than "model" already decided."""

    request_id: str
    edit: EditRequest
    file: TextFile
    update_lines: tuple[str, ...]
    source: Source
    started_at: float
    lines: tuple[str, ...] = ()
    prompt: Prompt | None = None
    max_tokens: int = 0


class ApplyRun:
    """One edit under way. Iterate for pieces of text and, last, the outcome; then it is over.

    The pieces are the answer as it is written, with "\\n" between lines whatever the file has;
    the outcome alone is exact. `cancel` withdraws the request if it is still running.
    """

    def __init__(self, plan: EditPlan, handle: RequestHandle | None) -> None:
        self._plan = plan
        self._handle = handle

    @property
    def request_id(self) -> str:
        """The name of the request in answers and logs."""
        return self._plan.request_id

    def cancel(self) -> None:
        """Give the request up; nothing more has to be read."""
        if self._handle is not None:
            self._handle.cancel()

    async def __aiter__(self) -> AsyncIterator[str | Outcome]:
        if self._handle is None or self._plan.prompt is None:
            yield await asyncio.to_thread(_conclude, self._plan, self._plan.lines)
            return
        decoder = self._plan.prompt.stream_decoder()
        token_ids: list[int] = []
        pieces: list[str] = []
        async with self._handle:
            async for event in self._handle:
                if isinstance(event, Tokens):
                    token_ids.extend(event.token_ids)
                    pieces.append(decoder.push(event.token_ids))
                elif isinstance(event, Finished):
                    pieces.append(decoder.finish())
                elif isinstance(event, Failed):
                    raise event.error
                else:
                    raise WithdrawnError(f"the request {event.request_id} was cancelled")
                if pieces[-1]:
                    yield pieces[-1]
                if isinstance(event, Finished):
                    yield await asyncio.to_thread(
                        _conclude_answer, self._plan, token_ids, "".join(pieces), event
                    )

    async def outcome(self) -> Outcome:
        """The outcome, without the pieces."""
        async for item in self:
            if isinstance(item, Outcome):
                return item
        raise WithdrawnError(f"the request {self.request_id} ended without an answer")


class ApplyPipeline:
    """Plans edits and runs them on one engine with one prompt profile."""

    def __init__(self, engine: AsyncEngine, profile: Profile, limits: PipelineLimits) -> None:
        self._engine = engine
        self._profile = profile
        self._limits = limits

    async def start(self, edit: EditRequest) -> ApplyRun:
        """Check, plan and submit an edit.

        Raises ApplyError, TextFileError, PromptError or EngineError before anything is computed.
        """
        plan = await asyncio.to_thread(self._plan, edit)
        if plan.prompt is None:
            return ApplyRun(plan, None)
        return ApplyRun(plan, self._engine.submit(self._engine_request(plan, plan.prompt)))

    def _plan(self, edit: EditRequest) -> EditPlan:
        """Everything before the engine; runs beside the event loop."""
        started_at = time.monotonic()
        for name in ("update", "instruction", "prediction", "path"):
            check_no_lone_surrogate(getattr(edit, name) or "", name=f"the {name}")
        self._check_sizes(edit)
        update_file = TextFile.from_text(edit.update)
        update_lines = strip_fence(update_file.lines, path=edit.path, language=edit.language)
        if not any(line.strip() for line in update_lines):
            raise EmptyUpdateError(
                f"the update has {len(edit.update)} characters and none of them is text; send the"
                " changed lines, with markers for what stays"
            )
        plan = EditPlan(
            request_id=f"apply-{uuid.uuid4().hex}",
            edit=edit,
            file=edit.original,
            update_lines=tuple(update_lines),
            source="model",
            started_at=started_at,
        )
        if not edit.original.lines:
            return _plan_new_file(plan, update_file)
        segments = split_segments(update_lines, edit.original.lines)
        reader = MarkerReader(edit.original.lines)
        if not segments and not any(
            marker.kind == "remove" for line in update_lines if (marker := reader.read(line))
        ):
            return replace(plan, source="original", lines=edit.original.lines)
        return self._plan_prompt(plan, segments)

    def _plan_prompt(self, plan: EditPlan, segments: list[list[str]]) -> EditPlan:
        edit = plan.edit
        prompt = self._profile.build(
            PromptRequest(
                original_lines=edit.original.lines,
                update_lines=plan.update_lines,
                segments=segments,
                instruction=edit.instruction,
                prediction_lines=(
                    None if edit.prediction is None else split_lines(edit.prediction)[0]
                ),
            )
        )
        return replace(plan, prompt=prompt, max_tokens=self._answer_limit(edit, prompt))

    def _answer_limit(self, edit: EditRequest, prompt: Prompt) -> int:
        """Tokens that the answer may have. Raises PromptTooLongError with tokens and limit."""
        info = self._engine.model_info
        limit = min(info.max_position, info.num_kv_tokens)
        num_original = len(prompt.original_token_ids) + len(prompt.end_token_ids)
        num_answer = edit.sampling.max_tokens or num_original
        num_needed = len(prompt.token_ids) + num_answer
        if num_needed > limit:
            raise PromptTooLongError(
                f"the prompt has {len(prompt.token_ids)} tokens and its answer about {num_answer},"
                f" together {num_needed}",
                value=num_needed,
                limit=limit,
                remedy=f"send a smaller file, or use a longer context (the model has"
                f" {info.max_position} tokens, its KV cache {info.num_kv_tokens}: see kv_memory)",
            )
        if edit.sampling.max_tokens is not None:
            return edit.sampling.max_tokens
        return min(default_max_tokens(prompt), limit - len(prompt.token_ids))

    def _engine_request(self, plan: EditPlan, prompt: Prompt) -> EngineRequest:
        edit, sampling = plan.edit, plan.edit.sampling
        max_draft_tokens = self._limits.max_draft_tokens
        if edit.max_draft_tokens is not None:
            max_draft_tokens = min(edit.max_draft_tokens, max_draft_tokens)
        return EngineRequest(
            request_id=plan.request_id,
            prompt_token_ids=tuple(prompt.token_ids),
            sampling=SamplingParams(
                max_tokens=plan.max_tokens,
                temperature=sampling.temperature,
                top_k=sampling.top_k,
                top_p=sampling.top_p,
                seed=sampling.seed,
                stop_token_ids=prompt.stop_token_ids,
            ),
            proposer=make_proposer(prompt) if max_draft_tokens else None,
            max_draft_tokens=max_draft_tokens,
            priority=edit.priority,
            deadline=None if edit.deadline_s is None else plan.started_at + edit.deadline_s,
        )

    def _check_sizes(self, edit: EditRequest) -> None:
        limit = self._limits.max_file_bytes
        sizes = {
            "original": len(edit.original.encode(edit.original.lines)),
            "update": len(edit.update.encode()),
        }
        for name, size in sizes.items():
            if size > limit:
                raise FileTooLargeError(
                    f"the {name} has {size} bytes",
                    value=size,
                    limit=limit,
                    remedy="send a smaller file, or raise max_file_bytes",
                )


def _plan_new_file(plan: EditPlan, update_file: TextFile) -> EditPlan:
    """The update is the whole file when there is no original."""
    reader = MarkerReader(())
    for number, line in enumerate(plan.update_lines, start=1):
        if reader.read(line) is not None or reader.has_inline_marker(line):
            raise MarkersWithoutFileError(
                f"line {number} of the update is a marker, but the original is empty, so it stands"
                " for nothing; send the original, or an update that is the whole new file"
            )
    original = plan.edit.original
    new_file = replace(
        update_file, encoding=original.encoding, byte_order_mark=original.byte_order_mark
    )
    return replace(plan, source="update", file=new_file, lines=plan.update_lines)


def _conclude_answer(
    plan: EditPlan, token_ids: list[int], shown_text: str, finished: Finished
) -> Outcome:
    """Judge the model's answer; one that did not end properly is kept as the text it is."""
    assert plan.prompt is not None, "an answer comes from a prompt"
    ending: AnswerEnding = "complete" if finished.reason == "stop" else "length"
    lines, _ = split_lines(shown_text)
    if ending == "complete":
        try:
            lines = plan.prompt.parse_answer(token_ids)
        except AnswerFormatError:
            ending = "malformed"
    return _conclude(plan, tuple(lines), ending=ending, stats=finished.stats)


def _conclude(
    plan: EditPlan,
    lines: tuple[str, ...],
    *,
    ending: AnswerEnding = "complete",
    stats: RequestStats | None = None,
) -> Outcome:
    old_text = plan.edit.original.decode()
    outcome = Outcome(
        request_id=plan.request_id,
        verdict=judge(plan.edit.original.lines, plan.update_lines, lines, ending=ending),
        file=plan.file,
        lines=lines,
        diff=unified_diff(old_text, plan.file.join(lines), path=plan.edit.path),
        source=plan.source,
        total_s=time.monotonic() - plan.started_at,
    )
    return outcome if stats is None else replace(outcome, stats=stats)
