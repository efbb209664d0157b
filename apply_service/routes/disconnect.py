"""Work for one client, which ends when the client goes away."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

from litestar.types import Receive

from apply_service.errors import WithdrawnError

T = TypeVar("T")


class Run(Protocol):
    """What is under way for a client."""

    @property
    def request_id(self) -> str:
        """Its name."""
        ...

    def cancel(self) -> None:
        """Give it up; harmless once it has ended."""
        ...


async def finish_for_client(receive: Receive, run: Run, work: Coroutine[Any, Any, T]) -> T:
    """What `work`, which reads `run`, comes to. Raises WithdrawnError if the client goes away."""
    working = asyncio.create_task(work)
    watching = asyncio.create_task(_wait_for_disconnect(receive))
    try:
        await asyncio.wait([working, watching], return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise WithdrawnError(f"the client of {run.request_id} went away")
        return working.result()
    finally:
        run.cancel()
        working.cancel()
        watching.cancel()


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
