"""Events of a run in progress: regions begin, grow, end, and are thrown away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class RegionStarted:
    """The model begins to rewrite lines `[start, end)` of the original, counted from 0.

    `index` names the region in later events; no other region of the request gets it.
    """

    index: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class RegionText:
    """The next piece of a region's new text, with "\\n" between lines whatever the file has."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class RegionDone:
    """A region's new text is complete."""

    index: int


@dataclass(frozen=True, slots=True)
class RegionRestart:
    """The text so far of a region is discarded, complete or not.

    The region is tried again in another form, or was cut off and the result is another one.
    """

    index: int


RunEvent = RegionStarted | RegionText | RegionDone | RegionRestart


class EventSink(Protocol):
    """Takes the events of one run, on the event loop; the texts are only for display."""

    def put(self, event: RunEvent) -> None:
        """Take an event; the first one comes once the engine has taken the first attempt."""


class _NoReader:
    """A sink for callers who want the outcome alone."""

    def put(self, event: RunEvent) -> None:
        """Drop the event."""


NO_READER: EventSink = _NoReader()
