"""What can go wrong with one edit before or beside the engine.

ApplyError ← UnknownModelError, UnavailableOptionError, NotReadyError, ModelFailedError,
             WithdrawnError, LimitError, ShuttingDownError, EngineStalledError, TextWorkerError,
             TextWorkStuckError
LimitError ← FileTooLargeError, PromptTooLongError, TextMemoryError
UsageError, DiskFullError (of the command line)
QueueFullError (of the engine) ← BusyError ← OverloadedError
"""

from __future__ import annotations

from functools import partial
from typing import Any

from batching.errors import QueueFullError


class UsageError(Exception):
    """The flags of a command contradict each other."""


class DiskFullError(Exception):
    """There is no room for what a command writes."""


class ApplyError(Exception):
    """Base of everything that the pipeline raises itself."""


class UnknownModelError(ApplyError):
    """The request names a model that is not served."""


class UnavailableOptionError(ApplyError):
    """An option has a value that exists in the format but is not available here."""


class NotReadyError(ApplyError):
    """The model is still being loaded."""


class ModelFailedError(ApplyError):
    """The model could not be loaded."""


class ShuttingDownError(ApplyError):
    """The server ends what it has begun and takes nothing new."""


class EngineStalledError(ApplyError):
    """The engine has work and does nothing."""


class TextWorkerError(ApplyError):
    """The process that works on the text of an edit failed over this one."""


class TextWorkStuckError(ApplyError):
    """More edits wait for their text work than is done in time."""


class BusyError(QueueFullError):
    """The queue is full; `retry_after_s` is when there will probably be room."""

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class OverloadedError(BusyError):
    """The requests before this one leave it no time; after `retry_after_s` they probably will."""


class WithdrawnError(ApplyError):
    """The request was cancelled before its answer was complete."""


class LimitError(ApplyError):
    """A limit was passed; the message has value, limit and remedy, and so have the attributes."""

    def __init__(self, what: str, *, value: float, limit: float, remedy: str) -> None:
        super().__init__(f"{what}, the limit is {limit}; {remedy}")
        self._what = what
        self.value = value
        self.limit = limit
        self.remedy = remedy

    def __reduce__(self) -> tuple[Any, ...]:
        """How it crosses from one process to another."""
        make = partial(type(self), value=self.value, limit=self.limit, remedy=self.remedy)
        return make, (self._what,)


class FileTooLargeError(LimitError):
    """The original or the update has more bytes than allowed."""


class PromptTooLongError(LimitError):
    """The prompt and its answer have more tokens than the model or its cache can hold."""


class TextMemoryError(LimitError):
    """The text side of an edit would take more memory than one may have."""
