"""Finds stop texts among tokens."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence


class StopTokens:
    """Tells the engine at which token an answer has one of the texts; that token is kept.

    Owned by the engine thread.
    """

    def __init__(
        self,
        stops: Sequence[bytes],
        *,
        decode: Callable[[Sequence[int]], bytes],
        special_token_ids: Collection[int],
    ) -> None:
        """`stops` are texts as the model writes them, one at least."""
        self._stops = tuple(stops)
        self._decode = decode
        self._special_token_ids = special_token_ids
        self._num_kept = max(map(len, self._stops)) - 1
        self._tail = b""

    def push(self, token_ids: Sequence[int]) -> int | None:
        """Take new tokens; the number of them up to a complete stop text, else None."""
        for position, token_id in enumerate(token_ids):
            if token_id in self._special_token_ids:
                continue
            self._tail += self._decode([token_id])
            if any(stop in self._tail for stop in self._stops):
                return position + 1
            self._tail = self._tail[max(0, len(self._tail) - self._num_kept) :]
        return None
