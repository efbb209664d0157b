"""Stop texts, which the engine has found among tokens: cut from the text that is sent."""

from __future__ import annotations

from collections.abc import Sequence


class StopCutter:
    """Passes text up to the first stop; a possible beginning of a stop is held back.

    `stop_text` is the stop that was found.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._pending = ""
        self.stop_text: str | None = None

    @property
    def has_stopped(self) -> bool:
        """True once a stop was found."""
        return self.stop_text is not None

    def push(self, text: str) -> str:
        """Take new text; the part that may be shown."""
        if self.has_stopped or not self._stops:
            return "" if self.has_stopped else text
        self._pending += text
        places = [(place, stop) for stop in self._stops if (place := self._pending.find(stop)) >= 0]
        if places:
            place, self.stop_text = min(places)
            return self._take(place)
        return self._take(len(self._pending) - max(map(self._num_begun, self._stops)))

    def finish(self) -> str:
        """The text held back, after the last piece."""
        return "" if self.has_stopped else self._take(len(self._pending))

    def _num_begun(self, stop: str) -> int:
        """Characters at the end of the text that a stop may begin with."""
        longest = min(len(stop) - 1, len(self._pending))
        return next(n for n in range(longest, -1, -1) if self._pending.endswith(stop[:n]))

    def _take(self, num_characters: int) -> str:
        text, self._pending = self._pending[:num_characters], self._pending[num_characters:]
        return text
