"""What an engine and its client send each other, as MessagePack."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Self

import msgspec

from batching.config import ModelInfo
from batching.errors import EngineError, StepFailedError
from batching.events import Cancelled, Event, Failed, Finished, Tokens
from batching.recipes import EditDrafts, Merges, StopTexts
from batching.request import EngineRequest, Priority, PromptKind, SamplingParams
from batching.stats import EngineStats

# An engine that is ready sends something at least so often, whatever its step takes.
HEARTBEAT_S = 1.0


class NotPlainDataError(TypeError):
    """A request brings objects along where another process needs their recipes."""


class Configure(msgspec.Struct, frozen=True, tag="configure"):
    """The first frame: whatever the engine's process loads its engine by."""

    settings: bytes


class Submit(msgspec.Struct, frozen=True, kw_only=True, tag="submit"):
    """An accepted request; its `deadline` is on the clock of the machine."""

    request_id: str
    prompt_token_ids: tuple[int, ...]
    sampling: SamplingParams
    proposer: EditDrafts | None = None
    max_draft_tokens: int = 64
    priority: Priority = Priority.INTERACTIVE
    deadline: float | None = None
    cache_salt: bytes = b""
    stop_checker: StopTexts | None = None
    constraint: Merges | None = None
    is_traced: bool = False
    prompt_kind: PromptKind = "edit"

    @classmethod
    def of(cls, request: EngineRequest) -> Self:
        """Raises NotPlainDataError."""
        proposer, stops, constraint = request.proposer, request.stop_checker, request.constraint
        if not (
            isinstance(proposer, EditDrafts | None)
            and isinstance(stops, StopTexts | None)
            and isinstance(constraint, Merges | None)
        ):
            raise NotPlainDataError(
                f"the request {request.request_id!r} has a proposer, constraint or stop checker of"
                " its own; give a recipe (batching.recipes), or use an engine in this process"
            )
        return cls(
            request_id=request.request_id,
            prompt_token_ids=request.prompt_token_ids,
            sampling=request.sampling,
            proposer=proposer,
            max_draft_tokens=request.max_draft_tokens,
            priority=request.priority,
            deadline=request.deadline,
            cache_salt=request.cache_salt,
            stop_checker=stops,
            constraint=constraint,
            is_traced=request.is_traced,
            prompt_kind=request.prompt_kind,
        )

    def request(self) -> EngineRequest:
        """The request."""
        return EngineRequest(
            request_id=self.request_id,
            prompt_token_ids=self.prompt_token_ids,
            sampling=self.sampling,
            proposer=self.proposer,
            max_draft_tokens=self.max_draft_tokens,
            priority=self.priority,
            deadline=self.deadline,
            cache_salt=self.cache_salt,
            stop_checker=self.stop_checker,
            constraint=self.constraint,
            is_traced=self.is_traced,
            prompt_kind=self.prompt_kind,
        )


class Cancel(msgspec.Struct, frozen=True, tag="cancel"):
    """Its owner withdraws a request."""

    request_id: str


class Stop(msgspec.Struct, frozen=True, tag="stop"):
    """The client leaves; its requests fail."""


ClientFrame = Configure | Submit | Cancel | Stop


class Hello(msgspec.Struct, frozen=True, kw_only=True, tag="hello"):
    """The engine is ready: its model, and how many requests may be live at once.

    Both ends must have the same `protocol`.
    """

    model_info: ModelInfo
    max_live: int
    protocol: str = ""


class StartFailed(msgspec.Struct, frozen=True, tag="start_failed"):
    """There is no engine; the kind of the error and its text."""

    kind: str
    message: str


class FailedFrame(msgspec.Struct, frozen=True, tag="failed", array_like=True):
    """The end of a request that could not be completed: the kind of the error and its text."""

    request_id: str
    kind: str
    message: str


EventFrame = Tokens | Finished | Cancelled | FailedFrame


class Events(msgspec.Struct, frozen=True, tag="events"):
    """Events in their order."""

    frames: list[EventFrame]

    @classmethod
    def of(cls, events: Sequence[Event]) -> Self:
        """Events as they are sent: an error goes as its kind and its text."""
        return cls([_frame_of(one) if isinstance(one, Failed) else one for one in events])

    def unwrap(self) -> Iterator[Event]:
        """The events."""
        for frame in self.frames:
            if isinstance(frame, FailedFrame):
                yield Failed(frame.request_id, error_of(frame.kind, frame.message))
            else:
                yield frame


class Pulse(msgspec.Struct, frozen=True, tag="pulse"):
    """A sign of life: figures, and for how long the engine has shown none itself."""

    stats: EngineStats
    stalled_s: float


EngineFrame = Hello | StartFailed | Events | Pulse


@cache
def protocol() -> str:
    """Tells releases apart whose frames have other fields: a hash of the schemas of all."""
    schemas = without_words(msgspec.json.schema_components((ClientFrame, EngineFrame)))
    return hashlib.sha256(msgspec.json.encode(schemas, order="sorted")).hexdigest()[:16]


def without_words(schema: Any) -> Any:
    """A schema without its descriptions, which are docstrings."""
    if isinstance(schema, Mapping):
        kept = {name: without_words(value) for name, value in schema.items()}
        # A field may be called so as well; what it holds is no text.
        return {
            name: value
            for name, value in kept.items()
            if name != "description" or not isinstance(value, str)
        }
    if isinstance(schema, (list, tuple)):
        return [without_words(one) for one in schema]
    return schema


def _frame_of(event: Failed) -> FailedFrame:
    return FailedFrame(event.request_id, kind_of(event.error), str(event.error))


def kind_of(error: EngineError) -> str:
    """The name of an error's class."""
    return type(error).__name__


def error_of(kind: str, message: str) -> EngineError:
    """The error of a kind; a StepFailedError where the kind is unknown."""
    found = {one.__name__: one for one in _subclasses(EngineError)}.get(kind, StepFailedError)
    error = found.__new__(found)
    error.args = (message,)
    return error


def _subclasses(kind: type[EngineError]) -> Iterator[type[EngineError]]:
    yield kind
    for one in kind.__subclasses__():
        yield from _subclasses(one)
