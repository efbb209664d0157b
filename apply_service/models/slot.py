"""Holds the model while it is being loaded: edits wait for it, and fail if it cannot be loaded."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Generic, Literal, TypeVar

from apply_service.apply.errors import BusyError, ModelFailedError, NotReadyError, ShuttingDownError

T = TypeVar("T")

ModelState = Literal["loading", "ready", "failed"]
MODEL_STATES: tuple[ModelState, ...] = ("loading", "ready", "failed")

# Loading has no end that is known beforehand, so those who find no room come back soon.
_RETRY_AFTER_S = 1.0


class ModelSlot(Generic[T]):
    """Holds one model from when it is loaded; to be used on the event loop alone.

    Up to `max_waiting` wait for it at the same time, as many as the engine would let wait.
    """

    def __init__(self, *, max_waiting: int) -> None:
        self._max_waiting = max_waiting
        self._num_waiting = 0
        self._model: T | None = None
        self._make_error: Callable[[], Exception] | None = None
        self._is_settled = asyncio.Event()

    @property
    def state(self) -> ModelState:
        """The model's state: loading, ready or failed."""
        if self._model is not None:
            return "ready"
        return "loading" if self._make_error is None else "failed"

    def put(self, model: T) -> None:
        """Set the loaded model and wake all waiters."""
        self._model = model
        self._is_settled.set()

    def fail(self, make_error: Callable[[], Exception]) -> None:
        """Note that loading failed; present and later waiters get an error each.

        A model that is there stays.
        """
        self._make_error = make_error
        self._is_settled.set()

    def get(self) -> T:
        """The model. Raises NotReadyError while it is being loaded, or what it failed with."""
        if self._model is not None:
            return self._model
        if self._make_error is not None:
            raise self._make_error()
        raise NotReadyError("the model is still being loaded; ask /health/ready and try again")

    async def wait(self, *, until: float | None) -> T:
        """The model, as soon as it is there; `until` is a time of the monotonic clock.

        Raises NotReadyError if it takes longer, BusyError if too many wait, or what it failed with.
        """
        if self._is_settled.is_set():
            return self.get()
        async with self.waiting(until=until):
            await self._is_settled.wait()
        return self.get()

    @asynccontextmanager
    async def waiting(self, *, until: float | None) -> AsyncIterator[None]:
        """One of those who wait. Raises as `wait` does."""
        if self._num_waiting >= self._max_waiting:
            raise BusyError(
                f"{self._num_waiting} edits wait for the model to be loaded, the limit is"
                f" {self._max_waiting}; send the edit again later",
                retry_after_s=_RETRY_AFTER_S,
            )
        self._num_waiting += 1
        try:
            async with asyncio.timeout(None if until is None else until - time.monotonic()):
                yield
        except TimeoutError:
            raise NotReadyError(
                "the edit needs the model, and the deadline passed while the model was being"
                ' loaded; send the edit again later, or with use_model "never"'
            ) from None
        finally:
            self._num_waiting -= 1


def model_failed() -> ModelFailedError:
    """The error of an edit that needs a model that failed to load.

    The reason may name paths of the server, so it stands in the log.
    """
    return ModelFailedError(
        "the model could not be loaded, the server's log says why; edits without a model still"
        ' work: use_model "never" gives the deterministic merge with its verdict'
    )


def shutting_down() -> ShuttingDownError:
    """The error of an edit that waits for a model while the server ends."""
    return ShuttingDownError("the server is shutting down and takes no new requests")
