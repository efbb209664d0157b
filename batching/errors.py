"""Errors of the engine.

EngineError ← RequestTooLongError, QueueFullError, EngineStoppedError, DeadlineExceededError,
              EngineLostError, ModelLoadError, StepFailedError, ConstraintFailedError,
              BrokenNumbersError,
              DuplicateRequestError, CacheError
CacheError ← CacheConfigError ← RedisUrlError
CacheError ← RedisError ← RedisReplyError, RedisProtocolError
"""


class EngineError(Exception):
    """Base of everything the engine raises or reports in a `Failed` event."""


class RequestTooLongError(EngineError):
    """The prompt and the answer asked for do not fit the model or the KV cache."""


class QueueFullError(EngineError):
    """The waiting queue is at its limit; try again later."""


class EngineStoppedError(EngineError):
    """The engine is draining or stopped and takes no new requests."""


class EngineLostError(EngineError):
    """The engine's process ended with requests in it; it is started again."""


class DeadlineExceededError(EngineError):
    """The request's deadline passed before its last token."""


class ModelLoadError(EngineError):
    """The model is missing, damaged or of a family that cannot be served."""


class StepFailedError(EngineError):
    """A forward pass failed; the requests in it were lost."""


class ConstraintFailedError(EngineError):
    """The constraint of a request raised an error; the request was lost, others go on."""

    def __init__(self, request_id: str, reason: Exception) -> None:
        super().__init__(
            f"the constraint of the answer failed: {reason!r}; send the request without it, and"
            " report this"
        )
        self.request_id = request_id


class BrokenNumbersError(EngineError):
    """The model computed NaN or infinity for a request; others go on."""


class DuplicateRequestError(EngineError):
    """A live request has the same id."""


class CacheError(EngineError):
    """Base of the errors of the prefix cache's tiers."""


class CacheConfigError(CacheError):
    """The settings of the prefix cache cannot be used."""


class RedisUrlError(CacheConfigError):
    """The URL of the Redis cannot be understood or names what is not supported."""


class RedisError(CacheError):
    """The Redis gave an answer that cannot be used."""


class RedisReplyError(RedisError):
    """The answer to a command is an error; the connection is still good."""


class RedisProtocolError(RedisError):
    """The reply does not fit the command; the connection must be closed."""
