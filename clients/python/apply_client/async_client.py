"""`AsyncApplyClient`: the service for callers on asyncio, with the methods of `ApplyClient`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Self

import httpx

from apply_client.address import resolve_address
from apply_client.edit import DEFAULT_OPTIONS, ApplyOptions, Edit, FilesEdit, Update
from apply_client.errors import ApplyClientError
from apply_client.protocol.answers import (
    REQUEST_ID_HEADER,
    check_status,
    files_result_of,
    models_of,
    result_of,
)
from apply_client.protocol.events import EventReader, StreamEvent
from apply_client.protocol.exchange import (
    DEFAULT_RETRY,
    Answer,
    ConnectionFailure,
    Outcome,
    RetryPolicy,
    Send,
    exchange,
)
from apply_client.protocol.many import DEFAULT_CONCURRENCY, EditOutcome, check_concurrency
from apply_client.protocol.requests import (
    ApiRequest,
    apply_request,
    files_request,
    health_request,
    models_request,
    stream_request,
)
from apply_client.protocol.status import ServiceStatus, status_of
from apply_client.protocol.transport import (
    answer_head,
    build_request,
    failure_of,
    http_options,
    too_late,
)
from apply_client.protocol.wire import ApplyResult, Choice, Content, FilesResult, ModelCard
from apply_client.workspace.open_file import PathLike, open_file
from apply_client.workspace.write_policy import WritePolicy

_SINGLE_TRY = 0
DRY_RUN = WritePolicy(is_dry_run=True)


class AsyncApplyClient:
    """Sends edits and returns typed results; an `async with` block closes its connections."""

    def __init__(
        self,
        base_url: str | None = None,
        *,
        api_key: str | None = None,
        retry: RetryPolicy = DEFAULT_RETRY,
        connect_timeout_s: float = 5.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Connect to one service. Raises AddressError.

        By default the address is that of APPLY_SERVICE_URL and the key that of APPLY_API_KEY.
        """
        address = resolve_address(base_url, api_key)
        self._retry = retry
        self._connect_timeout_s = connect_timeout_s
        self._http = httpx.AsyncClient(transport=transport, **http_options(address))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def apply(
        self,
        original: Content,
        update: Update,
        *,
        path: str | None = None,
        instruction: str | None = None,
        options: ApplyOptions = DEFAULT_OPTIONS,
    ) -> ApplyResult[Content]:
        """Merge an update into a file; text in gives text out, bytes give bytes.

        Raises EditRejectedError with findings for a result that failed its checks, and the other
        kinds of ApplyClientError.
        """
        edit = Edit(original, update, path=path, instruction=instruction, options=options)
        return await self.apply_edit(edit)

    async def apply_edit(self, edit: Edit[Content]) -> ApplyResult[Content]:
        """Apply an edit that is a value already, as `apply` does."""
        return result_of(await self._ask(apply_request(edit)), type(edit.original))

    async def resolve(self, edit: Edit[Content], choice: Choice | str) -> ApplyResult[Content]:
        """Apply an edit in doubt as one of its choices, or the id of one, says.

        Raises UnknownChoiceError with fresh choices if it is none of this edit.
        """
        chosen = choice if isinstance(choice, str) else choice.id
        return await self.apply_edit(replace(edit, resolve=chosen))

    async def apply_files(self, edit: FilesEdit) -> FilesResult[str | bytes]:
        """Apply edits of several files in one request; one that fails has a problem of its own.

        Raises APIStatusError for a request that is refused as a whole.
        """
        return files_result_of(await self._ask(files_request(edit)))

    async def apply_file(
        self,
        path: PathLike,
        update: Update,
        *,
        policy: WritePolicy = DRY_RUN,
        instruction: str | None = None,
        options: ApplyOptions = DEFAULT_OPTIONS,
    ) -> ApplyResult[bytes]:
        """Merge an update into a file of this machine, and write it if `policy` says so.

        Raises WorkspaceError too: ContentConflictError if the file changes meanwhile.
        """
        opened = await asyncio.to_thread(open_file, path)
        edit = Edit(
            opened.content, update, path=opened.label, instruction=instruction, options=options
        )
        result = await self.apply_edit(edit)
        if policy.is_written(result.status):
            await asyncio.to_thread(opened.replace_and_log, result.merged)
        return result

    @asynccontextmanager
    async def stream(
        self, edit: Edit[Content]
    ) -> AsyncIterator[AsyncIterator[StreamEvent | ApplyResult[Content]]]:
        """Events while the edit is written and, last, its result; leaving early withdraws it.

        Tries again only until the stream begins. Raises the errors of `apply`, also while it is
        read.
        """
        deadline = time.monotonic() + self._retry.timeout_s
        opening = _Opening(self._http, stream_request(edit), self._connect_timeout_s)
        try:
            answer = await self._drive(opening.send, self._retry)
            check_status(answer)
            reader = EventReader(
                type(edit.original), request_id=answer.headers.get(REQUEST_ID_HEADER)
            )
            yield opening.read_events(reader, deadline)
        finally:
            await opening.close()

    async def apply_many(
        self, edits: Iterable[Edit[Content]], *, max_concurrency: int = DEFAULT_CONCURRENCY
    ) -> AsyncIterator[EditOutcome[Content]]:
        """Apply independent edits side by side; outcomes come as they are ready.

        `edits` is read only as far as is needed. An edit that fails is an outcome with an error.
        """
        check_concurrency(max_concurrency)
        pending: set[asyncio.Task[EditOutcome[Content]]] = set()
        try:
            for position, edit in enumerate(edits):
                pending.add(asyncio.create_task(self._outcome(position, edit)))
                if len(pending) >= max_concurrency:
                    done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        yield task.result()
            while pending:
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    yield task.result()
        finally:
            for task in pending:
                task.cancel()
            await asyncio.gather(*pending, return_exceptions=True)

    async def models(self) -> tuple[ModelCard, ...]:
        """The served models, once they are loaded; none if they do not load."""
        return models_of(await self._ask(models_request()))

    async def status(self) -> ServiceStatus:
        """Ask once if the service answers and takes edits. Raises APIConnectionError."""
        once = RetryPolicy(max_retries=_SINGLE_TRY, timeout_s=self._retry.timeout_s)
        live = await self._ask(health_request("live"), once)
        ready = await self._ask(health_request("ready"), once)
        return status_of(live, ready)

    async def _outcome(self, position: int, edit: Edit[Content]) -> EditOutcome[Content]:
        try:
            return EditOutcome(position, edit, result=await self.apply_edit(edit))
        except ApplyClientError as error:
            return EditOutcome(position, edit, error=error)

    async def _ask(self, request: ApiRequest, policy: RetryPolicy | None = None) -> Answer:
        """The whole answer to a request."""
        opening = _Opening(self._http, request, self._connect_timeout_s)
        return await self._drive(opening.send_and_read, policy or self._retry)

    async def _drive(
        self, send: Callable[[float], Awaitable[Outcome]], policy: RetryPolicy
    ) -> Answer:
        """Carry out the effects of an exchange until it has its answer."""
        steps = exchange(policy)
        outcome: Outcome = None
        while True:
            try:
                effect = steps.send(outcome)
            except StopIteration as end:
                answer: Answer = end.value
                return answer
            if isinstance(effect, Send):
                outcome = await send(effect.timeout_s)
            else:
                await asyncio.sleep(effect.seconds)
                outcome = None


class _Opening:
    """Sends one request, as often as told, and holds the open answer."""

    def __init__(
        self, http: httpx.AsyncClient, request: ApiRequest, connect_timeout_s: float
    ) -> None:
        self._http = http
        self._request = request
        self._connect_timeout_s = connect_timeout_s
        self._response: httpx.Response | None = None

    async def send(self, timeout_s: float) -> Answer | ConnectionFailure:
        """The head of a 200, whose body stays open, or any other answer whole."""
        await self.close()
        return await self._within(timeout_s, self._open(timeout_s))

    async def send_and_read(self, timeout_s: float) -> Answer | ConnectionFailure:
        """The whole answer."""
        await self.close()
        return await self._within(timeout_s, self._open_and_read(timeout_s))

    async def read_events(
        self, reader: EventReader[Content], deadline: float
    ) -> AsyncIterator[StreamEvent | ApplyResult[Content]]:
        """The events up to the result. Raises ApplyClientError."""
        assert self._response is not None, "the answer has been opened"
        try:
            async for piece in self._response.aiter_bytes():
                for item in reader.feed(piece):
                    yield item
                if reader.is_done:
                    return
                if time.monotonic() >= deadline:
                    raise too_late()
        except httpx.RequestError as error:
            raise failure_of(error, self._http, self._request).as_error() from error
        reader.end()

    async def close(self) -> None:
        """Close the open answer, if there is one."""
        if self._response is not None:
            await self._response.aclose()
            self._response = None

    async def _within(
        self, timeout_s: float, work: Awaitable[Answer]
    ) -> Answer | ConnectionFailure:
        try:
            async with asyncio.timeout(timeout_s):
                return await work
        except (httpx.RequestError, TimeoutError) as error:
            return failure_of(error, self._http, self._request, timeout_s=timeout_s)

    async def _open(self, timeout_s: float) -> Answer:
        request = build_request(
            self._http,
            self._request,
            timeout_s=timeout_s,
            connect_timeout_s=self._connect_timeout_s,
        )
        self._response = await self._http.send(request, stream=True)
        head = answer_head(self._response)
        return head if head.status == 200 else await self._read(head)

    async def _open_and_read(self, timeout_s: float) -> Answer:
        head = await self._open(timeout_s)
        return head if head.status != 200 else await self._read(head)

    async def _read(self, head: Answer) -> Answer:
        """The answer with its body; closes the answer."""
        assert self._response is not None, "the answer has been opened"
        try:
            content = await self._response.aread()
        finally:
            await self.close()
        return Answer(head.status, head.headers, content)
