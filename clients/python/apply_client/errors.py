"""Errors between a caller and the service.

ApplyClientError ← APIConnectionError, APIStatusError, InvalidResponseError
APIConnectionError ← APITimeoutError
APIStatusError ← BadRequestError, AuthenticationError, NotFoundError, TooLargeError,
    UnknownChoiceError, UnprocessableEditError, RateLimitError, ServerError
UnprocessableEditError ← EditRejectedError
"""

from __future__ import annotations

from apply_client.protocol.wire import Choice, Finding, Problem


class ApplyClientError(Exception):
    """Base of all errors that the client raises; `request_id` is the service's, if known."""

    def __init__(self, message: str, *, request_id: str | None = None) -> None:
        super().__init__(message)
        self.request_id = request_id


class APIConnectionError(ApplyClientError):
    """The service could not be reached, or its answer broke off."""


class APITimeoutError(APIConnectionError):
    """The service did not answer within the allowed time."""


class InvalidResponseError(ApplyClientError):
    """The answer is not one of this API: from another server, or one too old or too new."""


class APIStatusError(ApplyClientError):
    """The service refused; `problem` says why, with value, limit and remedy where there are any."""

    def __init__(self, problem: Problem, *, request_id: str | None = None) -> None:
        remedy = f"; {problem.remedy}" if problem.remedy else ""
        super().__init__(
            f"{problem.detail}{remedy}", request_id=request_id or problem.request_id or problem.id
        )
        self.problem = problem

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.problem.status

    @property
    def code(self) -> str:
        """The name of the problem, such as `file-too-large`."""
        return self.problem.code

    @property
    def choices(self) -> tuple[Choice, ...]:
        """What the update may mean, the likeliest first; none where nothing can be chosen."""
        return self.problem.choices or ()


class BadRequestError(APIStatusError):
    """400 and other refusals of the request itself."""


class AuthenticationError(APIStatusError):
    """401 or 403: the API key is missing, wrong, or not allowed to do this."""


class NotFoundError(APIStatusError):
    """404: the address does not exist, or the model is not served."""


class TooLargeError(APIStatusError):
    """413: the file, the prompt or the body is over its limit."""


class UnknownChoiceError(APIStatusError):
    """409: no choice of this edit has the id; perhaps the file has changed. See `choices`."""


class UnprocessableEditError(APIStatusError):
    """422: the update cannot be applied to this file."""


class EditRejectedError(UnprocessableEditError):
    """422: the result failed its checks and is not returned.

    `findings` say what is wrong, each with a hint for the author of the update.
    """

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of the checks."""
        return self.problem.findings or ()


class RateLimitError(APIStatusError):
    """429: the queue or a limit of the API key is full; every allowed retry is spent."""


class ServerError(APIStatusError):
    """5xx: the service failed, is starting or stopping, or passed the deadline."""


_KIND_BY_STATUS: dict[int, type[APIStatusError]] = {
    401: AuthenticationError,
    403: AuthenticationError,
    404: NotFoundError,
    409: UnknownChoiceError,
    413: TooLargeError,
    422: UnprocessableEditError,
    429: RateLimitError,
}


def error_of(problem: Problem, *, request_id: str | None = None) -> APIStatusError:
    """The error for a problem."""
    if problem.findings is not None and problem.status == 422:
        return EditRejectedError(problem, request_id=request_id)
    default = ServerError if problem.status >= 500 else BadRequestError
    kind = _KIND_BY_STATUS.get(problem.status, default)
    return kind(problem, request_id=request_id)
