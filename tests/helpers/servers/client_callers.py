"""Both clients behind one synchronous interface, so that one suite tests them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, Protocol, TypeVar

from apply_client import (
    ApplyClient,
    ApplyResult,
    AsyncApplyClient,
    Edit,
    EditOutcome,
    FilesEdit,
    FilesResult,
    ModelCard,
    RetryPolicy,
    ServiceStatus,
    StreamEvent,
)

T = TypeVar("T")

FEW_RETRIES = RetryPolicy(max_retries=3, timeout_s=30.0, first_delay_s=0.01, max_delay_s=0.02)


class Caller(Protocol):
    """The methods of a client that tests call."""

    def apply(self, edit: Edit[Any]) -> ApplyResult[Any]: ...

    def stream(self, edit: Edit[Any]) -> list[StreamEvent | ApplyResult[Any]]: ...

    def apply_many(
        self, edits: Iterable[Edit[Any]], *, max_concurrency: int
    ) -> list[EditOutcome[Any]]: ...

    def apply_file(self, path: str, update: str, **options: Any) -> ApplyResult[bytes]: ...

    def apply_files(self, edit: FilesEdit) -> FilesResult[str | bytes]: ...

    def models(self) -> tuple[ModelCard, ...]: ...

    def status(self) -> ServiceStatus: ...


class SyncCaller:
    """Calls by `ApplyClient`."""

    def __init__(self, url: str, **options: Any) -> None:
        self._url = url
        self._options = {"retry": FEW_RETRIES, **options}

    def apply(self, edit: Edit[Any]) -> ApplyResult[Any]:
        with self._client() as client:
            return client.apply_edit(edit)

    def stream(self, edit: Edit[Any]) -> list[StreamEvent | ApplyResult[Any]]:
        with self._client() as client, client.stream(edit) as events:
            return list(events)

    def apply_many(
        self, edits: Iterable[Edit[Any]], *, max_concurrency: int
    ) -> list[EditOutcome[Any]]:
        with self._client() as client:
            return list(client.apply_many(edits, max_concurrency=max_concurrency))

    def apply_file(self, path: str, update: str, **options: Any) -> ApplyResult[bytes]:
        with self._client() as client:
            return client.apply_file(path, update, **options)

    def apply_files(self, edit: FilesEdit) -> FilesResult[str | bytes]:
        with self._client() as client:
            return client.apply_files(edit)

    def models(self) -> tuple[ModelCard, ...]:
        with self._client() as client:
            return client.models()

    def status(self) -> ServiceStatus:
        with self._client() as client:
            return client.status()

    def _client(self) -> ApplyClient:
        return ApplyClient(self._url, **self._options)


class AsyncCaller:
    """Calls by `AsyncApplyClient`, each in an event loop of its own."""

    def __init__(self, url: str, **options: Any) -> None:
        self._url = url
        self._options = {"retry": FEW_RETRIES, **options}

    def apply(self, edit: Edit[Any]) -> ApplyResult[Any]:
        async def call() -> ApplyResult[Any]:
            async with self._client() as client:
                return await client.apply_edit(edit)

        return _run(call())

    def stream(self, edit: Edit[Any]) -> list[StreamEvent | ApplyResult[Any]]:
        async def call() -> list[StreamEvent | ApplyResult[Any]]:
            async with self._client() as client, client.stream(edit) as events:
                return [event async for event in events]

        return _run(call())

    def apply_many(
        self, edits: Iterable[Edit[Any]], *, max_concurrency: int
    ) -> list[EditOutcome[Any]]:
        async def call() -> list[EditOutcome[Any]]:
            async with self._client() as client:
                outcomes = client.apply_many(edits, max_concurrency=max_concurrency)
                return [outcome async for outcome in outcomes]

        return _run(call())

    def apply_file(self, path: str, update: str, **options: Any) -> ApplyResult[bytes]:
        async def call() -> ApplyResult[bytes]:
            async with self._client() as client:
                return await client.apply_file(path, update, **options)

        return _run(call())

    def apply_files(self, edit: FilesEdit) -> FilesResult[str | bytes]:
        async def call() -> FilesResult[str | bytes]:
            async with self._client() as client:
                return await client.apply_files(edit)

        return _run(call())

    def models(self) -> tuple[ModelCard, ...]:
        async def call() -> tuple[ModelCard, ...]:
            async with self._client() as client:
                return await client.models()

        return _run(call())

    def status(self) -> ServiceStatus:
        async def call() -> ServiceStatus:
            async with self._client() as client:
                return await client.status()

        return _run(call())

    def _client(self) -> AsyncApplyClient:
        return AsyncApplyClient(self._url, **self._options)


def _run(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(coroutine)


CALLERS: dict[str, type[SyncCaller] | type[AsyncCaller]] = {
    "sync": SyncCaller,
    "async": AsyncCaller,
}
