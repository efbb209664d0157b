"""Drafters that others use, rebuilt from their idea, to measure ours against."""

from __future__ import annotations

from collections.abc import Sequence

from lookup.proposer import EMPTY_DRAFT, Draft
from lookup.suffix_automaton import SuffixAutomaton


class NgramDrafter:
    """The last n tokens, n from `max_n` down to `min_n`, at their earliest place in the context.

    The context is prompt and output. Engines scan it at every step; here an index of first places
    is kept, with the same drafts.
    """

    def __init__(self, prompt_token_ids: Sequence[int], *, min_n: int, max_n: int) -> None:
        self._context: list[int] = []
        self._prompt = prompt_token_ids
        self._sizes = range(max_n, min_n - 1, -1)
        self._first_ends: dict[tuple[int, ...], int] = {}
        self._num_indexed = 0

    def build(self) -> None:
        """Index the prompt."""
        self.commit(self._prompt)

    def propose(self, max_tokens: int) -> Draft:
        """Copy what followed the earliest occurrence."""
        size = len(self._context)
        for n in self._sizes:
            end = self._first_ends.get(tuple(self._context[size - n :])) if size > n else None
            if end is not None:
                token_ids = tuple(self._context[end : end + max_tokens])
                return Draft(token_ids, "context", n)
        return EMPTY_DRAFT

    def commit(self, token_ids: Sequence[int]) -> None:
        """Append tokens; index every n-gram that no longer ends the context."""
        self._context.extend(token_ids)
        for end in range(self._num_indexed, len(self._context)):
            for n in self._sizes:
                if end >= n:
                    self._first_ends.setdefault(tuple(self._context[end - n : end]), end)
        self._num_indexed = len(self._context)


class AutomatonDrafter:
    """The longest suffix of prompt and output that occurred before, at its earliest place."""

    def __init__(self, prompt_token_ids: Sequence[int]) -> None:
        self._prompt = prompt_token_ids
        self._context: list[int] = []
        self._automaton = SuffixAutomaton()

    def build(self) -> None:
        """Index the prompt."""
        self.commit(self._prompt)

    def propose(self, max_tokens: int) -> Draft:
        """Copy what followed the earliest occurrence of the longest repeated suffix."""
        state, match = self._automaton.repeated_suffix()
        if match == 0:
            return EMPTY_DRAFT
        end = self._automaton.first_end(state)
        return Draft(tuple(self._context[end : end + max_tokens]), "context", match)

    def commit(self, token_ids: Sequence[int]) -> None:
        """Append tokens to text and automaton."""
        self._context.extend(token_ids)
        self._automaton.extend(token_ids)
