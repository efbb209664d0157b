"""Errors of one edit outside the engine.

ApplyError ← UnknownModelError, UnavailableOptionError, NotReadyError, ModelFailedError,
             WithdrawnError, LimitError, ShuttingDownError, EngineStalledError, TextWorkerError,
             TextWorkStuckError, ChoiceError
ChoiceError ← UnknownChoiceError, DoubtfulUpdateError (a NoMarkerError too)
LimitError ← FileTooLargeError, PromptTooLongError, TextMemoryError
UsageError, DiskFullError (of the command line)
QueueFullError (of the engine) ← BusyError ← OverloadedError
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from apply_service.edit.read.snippet_error import NoMarkerError
from batching.errors import QueueFullError

if TYPE_CHECKING:  # it reads texts, for which no command line waits
    from apply_service.apply.choices import Choice


class UsageError(Exception):
    """The flags of a command contradict each other."""


class DiskFullError(Exception):
    """The disk has no room for the output of a command."""


class ApplyError(Exception):
    """Base of all errors that the pipeline raises itself."""


class UnknownModelError(ApplyError):
    """The request names a model that is not served."""


class UnavailableOptionError(ApplyError):
    """An option has a value that exists in the format but is not available here."""


class NotReadyError(ApplyError):
    """The model is still being loaded."""


class ModelFailedError(ApplyError):
    """The model could not be loaded."""


class ShuttingDownError(ApplyError):
    """The server is shutting down: it finishes running requests and takes no new ones."""


class EngineStalledError(ApplyError):
    """The engine has work and makes no progress, or shows no sign of life."""


class TextWorkerError(ApplyError):
    """The process for the text work of an edit failed on this edit."""


class TextWorkStuckError(ApplyError):
    """More edits wait for their text work than can be done in time."""


class ChoiceError(ApplyError):
    """An edit without a result, and what it may mean: `choices`, the likeliest first."""

    def __init__(self, message: str, choices: tuple[Choice, ...]) -> None:
        super().__init__(message, choices)
        self.choices = choices

    def __str__(self) -> str:
        return str(self.args[0])


class UnknownChoiceError(ChoiceError):
    """`resolve` names no choice of this edit: perhaps the file has changed since."""


class DoubtfulUpdateError(ChoiceError, NoMarkerError):
    """The update does not say where it belongs, and no merge of it is certain."""


class BusyError(QueueFullError):
    """The queue is full; there will probably be room after `retry_after_s`."""

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class OverloadedError(BusyError):
    """Earlier requests leave this one no time; after `retry_after_s` they probably will."""


class WithdrawnError(ApplyError):
    """The request was cancelled before its answer was complete."""


class LimitError(ApplyError):
    """The request exceeds a limit; message and attributes have value, limit and remedy."""

    def __init__(self, what: str, *, value: float, limit: float, remedy: str) -> None:
        super().__init__(f"{what}, the limit is {limit}; {remedy}")
        self._what = what
        self.value = value
        self.limit = limit
        self.remedy = remedy

    def __reduce__(self) -> tuple[Any, ...]:
        """The error's form between processes."""
        make = partial(type(self), value=self.value, limit=self.limit, remedy=self.remedy)
        return make, (self._what,)


class FileTooLargeError(LimitError):
    """The original or the update has more bytes than allowed."""


class PromptTooLongError(LimitError):
    """The prompt and its answer have more tokens than the model or its cache can hold."""


class TextMemoryError(LimitError):
    """The text work of an edit would take more memory than allowed."""
