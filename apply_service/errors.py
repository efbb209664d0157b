"""What can go wrong with one edit before or beside the engine.

ApplyError ← EmptyUpdateError, MarkersWithoutFileError, UnknownModelError, UnavailableOptionError,
             NotReadyError, WithdrawnError, LimitError ← FileTooLargeError, PromptTooLongError, DeadlineTooShortError
"""

from __future__ import annotations


class ApplyError(Exception):
    """Base of everything that the pipeline raises itself."""


class EmptyUpdateError(ApplyError):
    """The update has no text, so nothing can be applied."""


class MarkersWithoutFileError(ApplyError):
    """The original is empty, so there is nothing that a marker of the update could stand for."""


class UnknownModelError(ApplyError):
    """The request names a model that is not served."""


class UnavailableOptionError(ApplyError):
    """An option has a value that exists in the format but is not available here."""


class NotReadyError(ApplyError):
    """The model is still being loaded."""


class WithdrawnError(ApplyError):
    """The request was cancelled before its answer was complete."""


class LimitError(ApplyError):
    """A limit was passed; the message has value, limit and remedy, and so have the attributes."""

    def __init__(self, what: str, *, value: float, limit: float, remedy: str) -> None:
        super().__init__(f"{what}, the limit is {limit}; {remedy}")
        self.value = value
        self.limit = limit
        self.remedy = remedy


class FileTooLargeError(LimitError):
    """The original or the update has more bytes than allowed."""


class PromptTooLongError(LimitError):
    """The prompt and its answer have more tokens than the model or its cache can hold."""


class DeadlineTooShortError(LimitError):
    """The edit would take longer than its deadline; value and limit are seconds."""
