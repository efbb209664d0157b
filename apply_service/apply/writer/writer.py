"""Asks a writer for the parts of an edit, and reads the texts that it writes."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from apply_service.apply.edit_request import EditRequest, SamplingOptions
from apply_service.apply.remote.chat_reply import ChatUsage, read_chat
from apply_service.apply.remote.endpoint import (
    RemoteEndpoint,
    RemoteRefusedError,
    RemoteUnavailableError,
    RemoteUnreadableError,
)
from apply_service.apply.remote.server import Failure, Known, RemoteServer, RemoteTerms
from apply_service.apply.writer.answer_form import BINDINGS, MANNERS, WriterForm
from apply_service.apply.writer.task import Lines, WritingPart, WritingTask
from apply_service.edit.regions import Region
from apply_service.shown_text import shown_line

# How a text came: bound to the merges, or written freely.
Manner = Literal["bound", "free"]
WriterResult = Manner | Failure
Observe = Callable[[WriterResult, float | None], None]

_LETTERS = ("A", "B")
_REHEARSED_GRAMMAR = 'root ::= "A" | "B"\n'
_REHEARSAL = WritingPart(
    Region(0, 0),
    (),
    [{"role": "user", "content": "Write the word hello in lower case."}],
    (("hello",),),
    8,
)


def nobody_observes(_result: WriterResult, _seconds: float | None) -> None:
    """Where nobody counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The texts of all parts of an edit, in order, and the tokens that the server is believed."""

    texts: tuple[Lines, ...]
    manner: Manner
    model: str
    num_prompt_tokens: int
    num_output_tokens: int


class Writer:
    """A model that writes edits.

    It never raises: whatever goes wrong, there is no text, and `observe` hears why.
    """

    def __init__(
        self,
        endpoint: RemoteEndpoint,
        terms: RemoteTerms,
        *,
        model: str | None = None,
        observe: Observe = nobody_observes,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.accuracy = terms.accuracy
        self._observe = observe
        self._server = RemoteServer(
            endpoint, terms, rehearse=self._first_form, observe=observe, model=model, clock=clock
        )
        self.prepare = self._server.prepare
        self.meet = self._server.meet
        self.close = self._server.close

    async def write(
        self, edit: EditRequest, task: WritingTask, *, left_s: float | None = None
    ) -> Written | None:
        """The texts of a task; None if they are not all there in time.

        `left_s` are the seconds that the edit has left.
        """
        heard = await self._server.ask(
            partial(self._talk, edit, task), priority=edit.priority, left_s=left_s
        )
        if heard is None:
            return None
        self._observe(heard.said.manner, heard.seconds)
        return heard.said

    async def _talk(
        self, edit: EditRequest, task: WritingTask, known: Known[WriterForm]
    ) -> Written:
        """Have all parts written, bound if that can be. Raises RemoteError."""
        if edit.constraint != "none" and known.form.can_bind and task.can_bind:
            try:
                return await self._write_all(edit, task, known, "bound")
            except RemoteRefusedError:
                pass  # a grammar may be too much for it
        return await self._write_all(edit, task, known, "free")

    async def _write_all(
        self, edit: EditRequest, task: WritingTask, known: Known[WriterForm], manner: Manner
    ) -> Written:
        """All parts, side by side. Raises RemoteError."""
        try:
            async with asyncio.TaskGroup() as group:
                asking = [
                    group.create_task(self._write(part, edit.sampling, known, manner))
                    for part in task.parts
                ]
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        parts = [one.result() for one in asking]
        return Written(
            texts=tuple(text for text, _ in parts),
            manner=manner,
            model=shown_line(known.model),
            num_prompt_tokens=sum(usage.prompt_tokens for _, usage in parts),
            num_output_tokens=sum(usage.completion_tokens for _, usage in parts),
        )

    async def _write(
        self,
        part: WritingPart,
        sampling: SamplingOptions,
        known: Known[WriterForm],
        manner: Manner,
    ) -> tuple[Lines, ChatUsage]:
        """One part; the only merge of a bound one is known. Raises RemoteError."""
        if manner == "bound" and part.grammar is None:
            return part.merges[0], ChatUsage()
        grammar = part.grammar if manner == "bound" else None
        body = known.form.body(part, sampling, model=known.model, grammar=grammar)
        payload = await self._server.chat(body)
        read = read_chat(payload)
        content = None if read is None else read[0].message.content
        if read is None or content is None:
            raise RemoteUnreadableError("it answers with no text")
        if read[0].finish_reason == "length":
            raise RemoteUnreadableError("its answer was cut off")
        lines = part.read(content) if grammar is None else part.read_bound(content)
        if lines is None:
            raise RemoteUnreadableError(
                "its answer has no <updated-code>" if grammar is None else "its answer is no merge"
            )
        return lines, ChatUsage.of(read[1], body)

    async def _first_form(self, model: str) -> WriterForm:
        """The first form that binds the server, else the first that it takes.

        Raises RemoteError.
        """
        for manner in MANNERS:
            try:
                for name in BINDINGS:
                    form = WriterForm(name, manner)
                    if await self._is_kept(form, model):
                        return form
                form = WriterForm("text", manner)
                await self._rehearse(form, model, grammar=None)
            except RemoteRefusedError:
                continue
            return form
        raise RemoteUnavailableError("the server takes no chat in any form that is known")

    async def _is_kept(self, form: WriterForm, model: str) -> bool:
        """True if the server keeps to a grammar. Raises RemoteError, but for a refusal."""
        try:
            said = await self._rehearse(form, model, grammar=_REHEARSED_GRAMMAR)
        except RemoteRefusedError:
            return False
        return said.strip() in _LETTERS

    async def _rehearse(self, form: WriterForm, model: str, *, grammar: str | None) -> str:
        body = form.body(_REHEARSAL, SamplingOptions(), model=model, grammar=grammar)
        read = read_chat(await self._server.chat(body))
        content = None if read is None else read[0].message.content
        if content is None:
            raise RemoteUnavailableError("the server answers with no text")
        return re.sub(r"\s+", " ", content)
