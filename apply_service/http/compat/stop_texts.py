"""Stop texts: found by the engine among tokens, then cut from the text that is sent."""

from __future__ import annotations

from collections.abc import Sequence

from apply_service.prompts.prompt import Prompt


class StopTokens:
    """Tells the engine at which token an answer has one of the texts; that token is kept.

    Owned by the engine thread.
    """

    def __init__(self, stops: Sequence[str], prompt: Prompt) -> None:
        """`stops` are the caller's stop texts, one at least."""
        self._stops = [text.encode() for text in prompt.substitution.apply(stops)]
        self._tokenizer = prompt.tokenizer
        self._num_kept = max(map(len, self._stops)) - 1
        self._tail = b""

    def push(self, token_ids: Sequence[int]) -> int | None:
        """Take new tokens; the number of them up to a complete stop text, else None."""
        for position, token_id in enumerate(token_ids):
            if token_id in self._tokenizer.special_token_ids:
                continue
            self._tail += self._tokenizer.decode_bytes([token_id])
            if any(stop in self._tail for stop in self._stops):
                return position + 1
            self._tail = self._tail[max(0, len(self._tail) - self._num_kept) :]
        return None


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
