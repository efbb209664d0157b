"""`ApplyClient`: the service for synchronous callers. Safe to be used by several threads."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
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


class ApplyClient:
    """Sends edits and returns typed results; a `with` block closes its connections."""

    def __init__(
        self,
        base_url: str | None = None,
        *,
        api_key: str | None = None,
        retry: RetryPolicy = DEFAULT_RETRY,
        connect_timeout_s: float = 5.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Connect to one service. Raises AddressError.

        By default the address is that of APPLY_SERVICE_URL and the key that of APPLY_API_KEY.
        """
        address = resolve_address(base_url, api_key)
        self._retry = retry
        self._connect_timeout_s = connect_timeout_s
        self._http = httpx.Client(transport=transport, **http_options(address))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def apply(
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
        return self.apply_edit(edit)

    def apply_edit(self, edit: Edit[Content]) -> ApplyResult[Content]:
        """Apply an edit that is a value already, as `apply` does."""
        return result_of(self._ask(apply_request(edit)), type(edit.original))

    def resolve(self, edit: Edit[Content], choice: Choice | str) -> ApplyResult[Content]:
        """Apply an edit in doubt as one of its choices, or the id of one, says.

        Raises UnknownChoiceError with fresh choices if it is none of this edit.
        """
        chosen = choice if isinstance(choice, str) else choice.id
        return self.apply_edit(replace(edit, resolve=chosen))

    def apply_files(self, edit: FilesEdit) -> FilesResult[str | bytes]:
        """Apply edits of several files in one request; one that fails has a problem of its own.

        Raises APIStatusError for a request that is refused as a whole.
        """
        return files_result_of(self._ask(files_request(edit)))

    def apply_file(
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
        opened = open_file(path)
        edit = Edit(
            opened.content, update, path=opened.label, instruction=instruction, options=options
        )
        result = self.apply_edit(edit)
        if policy.is_written(result.status):
            opened.replace_and_log(result.merged)
        return result

    @contextmanager
    def stream(self, edit: Edit[Content]) -> Iterator[Iterator[StreamEvent | ApplyResult[Content]]]:
        """Events while the edit is written and, last, its result; leaving early withdraws it.

        Tries again only until the stream begins. Raises the errors of `apply`, also while it is
        read.
        """
        deadline = time.monotonic() + self._retry.timeout_s
        opening = _Opening(self._http, stream_request(edit), self._connect_timeout_s)
        try:
            answer = self._drive(opening.send, self._retry)
            check_status(answer)
            reader = EventReader(
                type(edit.original), request_id=answer.headers.get(REQUEST_ID_HEADER)
            )
            yield opening.read_events(reader, deadline)
        finally:
            opening.close()

    def apply_many(
        self, edits: Iterable[Edit[Content]], *, max_concurrency: int = DEFAULT_CONCURRENCY
    ) -> Iterator[EditOutcome[Content]]:
        """Apply independent edits side by side; outcomes come as they are ready.

        `edits` is read only as far as is needed. An edit that fails is an outcome with an error.
        """
        check_concurrency(max_concurrency)
        with ThreadPoolExecutor(max_concurrency, thread_name_prefix="apply") as pool:
            pending: set[Future[EditOutcome[Content]]] = set()
            try:
                for position, edit in enumerate(edits):
                    pending.add(pool.submit(self._outcome, position, edit))
                    if len(pending) >= max_concurrency:
                        done, pending = wait(pending, return_when=FIRST_COMPLETED)
                        yield from (future.result() for future in done)
                while pending:
                    done, pending = wait(pending, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in done)
            finally:
                for future in pending:
                    future.cancel()

    def models(self) -> tuple[ModelCard, ...]:
        """The served models, once they are loaded; none if they do not load."""
        return models_of(self._ask(models_request()))

    def status(self) -> ServiceStatus:
        """Ask once if the service answers and takes edits. Raises APIConnectionError."""
        once = RetryPolicy(max_retries=_SINGLE_TRY, timeout_s=self._retry.timeout_s)
        live = self._ask(health_request("live"), once)
        ready = self._ask(health_request("ready"), once)
        return status_of(live, ready)

    def _outcome(self, position: int, edit: Edit[Content]) -> EditOutcome[Content]:
        try:
            return EditOutcome(position, edit, result=self.apply_edit(edit))
        except ApplyClientError as error:
            return EditOutcome(position, edit, error=error)

    def _ask(self, request: ApiRequest, policy: RetryPolicy | None = None) -> Answer:
        """The whole answer to a request."""
        opening = _Opening(self._http, request, self._connect_timeout_s)
        return self._drive(opening.send_and_read, policy or self._retry)

    def _drive(self, send: Callable[[float], Outcome], policy: RetryPolicy) -> Answer:
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
                outcome = send(effect.timeout_s)
            else:
                time.sleep(effect.seconds)
                outcome = None


class _Opening:
    """Sends one request, as often as told, and holds the open answer."""

    def __init__(self, http: httpx.Client, request: ApiRequest, connect_timeout_s: float) -> None:
        self._http = http
        self._request = request
        self._connect_timeout_s = connect_timeout_s
        self._response: httpx.Response | None = None

    def send(self, timeout_s: float) -> Answer | ConnectionFailure:
        """The head of a 200, whose body stays open, or any other answer whole."""
        deadline = time.monotonic() + timeout_s
        self.close()
        try:
            request = build_request(
                self._http,
                self._request,
                timeout_s=timeout_s,
                connect_timeout_s=self._connect_timeout_s,
            )
            self._response = self._http.send(request, stream=True)
            head = answer_head(self._response)
            return head if head.status == 200 else self._read(head, deadline)
        except httpx.RequestError as error:
            return failure_of(error, self._http, self._request, timeout_s=timeout_s)

    def send_and_read(self, timeout_s: float) -> Answer | ConnectionFailure:
        """The whole answer."""
        deadline = time.monotonic() + timeout_s
        outcome = self.send(timeout_s)
        if isinstance(outcome, ConnectionFailure) or outcome.status != 200:
            return outcome
        try:
            return self._read(outcome, deadline)
        except httpx.RequestError as error:
            return failure_of(error, self._http, self._request, timeout_s=timeout_s)

    def read_events(
        self, reader: EventReader[Content], deadline: float
    ) -> Iterator[StreamEvent | ApplyResult[Content]]:
        """The events up to the result. Raises ApplyClientError."""
        assert self._response is not None, "the answer has been opened"
        try:
            for piece in self._response.iter_bytes():
                yield from reader.feed(piece)
                if reader.is_done:
                    return
                if time.monotonic() >= deadline:
                    raise too_late()
        except httpx.RequestError as error:
            raise failure_of(error, self._http, self._request).as_error() from error
        reader.end()

    def close(self) -> None:
        """Close the open answer, if there is one."""
        if self._response is not None:
            self._response.close()
            self._response = None

    def _read(self, head: Answer, deadline: float) -> Answer:
        """The answer with its body; closes the answer."""
        assert self._response is not None, "the answer has been opened"
        pieces = []
        try:
            for piece in self._response.iter_bytes():
                pieces.append(piece)
                if time.monotonic() >= deadline:
                    raise httpx.ReadTimeout("the answer did not end in time")
        finally:
            self.close()
        return Answer(head.status, head.headers, b"".join(pieces))
