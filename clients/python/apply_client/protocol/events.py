"""The events of a stream while an edit is written."""

from __future__ import annotations

from typing import Any, Generic

import msgspec

from apply_client.errors import APIConnectionError, error_of
from apply_client.protocol.answers import decode, result_from
from apply_client.protocol.sse import ServerSentEvent, SseParser
from apply_client.protocol.wire import ApplyResult, Content, Problem


class RegionStarted(msgspec.Struct, frozen=True, kw_only=True):
    """The model begins to rewrite lines of the original, both included, counted from 1."""

    region: int
    start_line: int
    end_line: int


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a region's new text."""

    region: int
    text: str


class RegionDone(msgspec.Struct, frozen=True, kw_only=True):
    """A region is complete."""

    region: int


class RegionRestart(msgspec.Struct, frozen=True, kw_only=True):
    """All text so far of a region is discarded."""

    region: int


StreamEvent = RegionStarted | Token | RegionDone | RegionRestart
_EVENT_KINDS: dict[str, type[StreamEvent]] = {
    "region": RegionStarted,
    "token": Token,
    "region_done": RegionDone,
    "region_restart": RegionRestart,
}


class EventReader(Generic[Content]):
    """Turns the bytes of a stream into events and, last, the result. Does no I/O."""

    def __init__(self, kind: type[Content], *, request_id: str | None = None) -> None:
        self._kind: type[Content] = kind
        self._request_id = request_id
        self._parser = SseParser()
        self.is_done = False

    def feed(self, piece: bytes) -> list[StreamEvent | ApplyResult[Content]]:
        """The events that this piece completes; none behind the result.

        Events of other names are skipped. Raises APIStatusError for an `error` event,
        InvalidResponseError for garbage.
        """
        items: list[StreamEvent | ApplyResult[Content]] = []
        for event in self._parser.feed(piece):
            if self.is_done:
                break
            item = self._item_of(event)
            if item is not None:
                items.append(item)
        return items

    def end(self) -> None:
        """End the stream. Raises APIConnectionError if the result has not come yet."""
        if not self.is_done:
            raise APIConnectionError(
                "the stream ended before its result; send the edit again",
                request_id=self._request_id,
            )

    def _item_of(self, event: ServerSentEvent) -> StreamEvent | ApplyResult[Content] | None:
        if event.name == "result":
            self.is_done = True
            return result_from(event.content, self._kind, request_id=self._request_id)
        if event.name == "error":
            self.is_done = True
            problem = decode(event.content, Problem, request_id=self._request_id)
            raise error_of(problem, request_id=self._request_id)
        kind: Any = _EVENT_KINDS.get(event.name)
        if kind is None:
            return None
        item: StreamEvent = decode(event.content, kind, request_id=self._request_id)
        return item
