"""A suffix automaton over token ids: every substring of a text, found in one walk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

ROOT = 0


class SuffixAutomaton:
    """All substrings of a growing text of token ids.

    State 0 (`ROOT`) is the empty string. A state stands for the substrings that share one set of
    end positions; an end position is the index just behind the last token of an occurrence.
    Extension is amortised constant time a token; a text of n tokens has at most 2n states.
    """

    __slots__ = (
        "_first_child",
        "_first_end",
        "_last",
        "_lengths",
        "_links",
        "_next_child",
        "_num_ends",
        "_size",
        "_transitions",
    )

    def __init__(self, token_ids: Iterable[int] = ()) -> None:
        self._transitions: list[dict[int, int]] = [{}]
        self._links: list[int] = [-1]
        self._lengths: list[int] = [0]
        self._first_end: list[int] = [0]
        self._last = ROOT
        self._size = 0
        self._num_ends: list[int] = []
        self._first_child: list[int] = []
        self._next_child: list[int] = []
        self.extend(token_ids)

    def __len__(self) -> int:
        """Number of tokens in the text."""
        return self._size

    @property
    def num_states(self) -> int:
        """Number of states, the root included; tests check it."""
        return len(self._links)

    def extend(self, token_ids: Iterable[int]) -> None:
        """Append tokens to the text."""
        transitions, links = self._transitions, self._links
        lengths, first_end = self._lengths, self._first_end
        last, size = self._last, self._size
        for token in token_ids:
            size += 1
            state = len(links)
            lengths.append(size)
            first_end.append(size)
            transitions.append({})
            links.append(ROOT)
            before = last
            last = state
            while token not in (edges := transitions[before]):
                edges[token] = state
                before = links[before]
                if before < 0:
                    break
            else:
                target = edges[token]
                if lengths[before] + 1 != lengths[target]:
                    target = self._split(before, token, target)
                links[state] = target
        self._last, self._size = last, size

    def _split(self, before: int, token: int, target: int) -> int:
        """Clone `target` for its substrings that `before` reaches; return the clone."""
        transitions, links = self._transitions, self._links
        clone = len(links)
        self._lengths.append(self._lengths[before] + 1)
        self._first_end.append(self._first_end[target])
        transitions.append(transitions[target].copy())
        links.append(links[target])
        links[target] = clone
        while before >= 0 and transitions[before].get(token) == target:
            transitions[before][token] = clone
            before = links[before]
        return clone

    def step(self, state: int, token: int) -> int | None:
        """The state of the matched substring plus `token`, or None if that does not occur.

        Right for a match that is the longest string of `state` or was itself reached by `step`
        from the root; `advance` keeps the length beside the state.
        """
        return self._transitions[state].get(token)

    def advance(self, state: int, length: int, token_ids: Sequence[int]) -> tuple[int, int]:
        """Feed tokens to a stream matched up to `(state, length)`; return the new pair.

        The pair stands for the longest suffix of the stream that occurs in the text. A pair stays
        valid when the text grows only if its text is static, so keep pairs of static texts alone.
        """
        transitions, links, lengths = self._transitions, self._links, self._lengths
        for token in token_ids:
            target = transitions[state].get(token)
            if target is not None:
                state = target
                length += 1
                continue
            while state != ROOT:
                state = links[state]
                target = transitions[state].get(token)
                if target is not None:
                    length = lengths[state] + 1
                    state = target
                    break
            else:
                length = 0
        return state, length

    def parent(self, state: int) -> tuple[int, int]:
        """The longest suffix of `state` that has more end positions, as `(state, length)`.

        The root is its own parent.
        """
        if state == ROOT:
            return ROOT, 0
        link = self._links[state]
        return link, self._lengths[link]

    def repeated_suffix(self) -> tuple[int, int]:
        """The longest suffix of the text that also ends earlier in it, as `(state, length)`."""
        return self.parent(self._last)

    def first_end(self, state: int) -> int:
        """The smallest end position of `state`."""
        return self._first_end[state]

    def num_ends(self, state: int) -> int:
        """Number of end positions of `state`. Counts the text if it has grown: O(n)."""
        if len(self._num_ends) != len(self._links):
            self._count_ends()
        return self._num_ends[state]

    def end_positions(self, state: int) -> list[int]:
        """All end positions of `state`, ascending; as long as they are many.

        The root (the empty string) ends at every position from 1 to the length of the text.
        """
        if len(self._num_ends) != len(self._links):
            self._count_ends()
        lengths, first_end = self._lengths, self._first_end
        first_child, next_child = self._first_child, self._next_child
        found: list[int] = []
        stack = [state]
        while stack:
            state = stack.pop()
            if state != ROOT and lengths[state] == first_end[state]:
                found.append(first_end[state])
            child = first_child[state]
            while child > 0:
                stack.append(child)
                child = next_child[child]
        found.sort()
        return found

    def _count_ends(self) -> None:
        """Count end positions and list the children of each state in the tree of links.

        A state that was made by a split, whose length is below its first end, ends nowhere that a
        child of it does not.
        """
        links, lengths = self._links, self._lengths
        counts = [int(length == end) for length, end in zip(lengths, self._first_end, strict=True)]
        counts[ROOT] = 0
        first_child = [0] * len(links)
        next_child = [0] * len(links)
        for state in sorted(range(1, len(links)), key=lengths.__getitem__, reverse=True):
            link = links[state]
            counts[link] += counts[state]
            next_child[state] = first_child[link]
            first_child[link] = state
        self._num_ends, self._first_child, self._next_child = counts, first_child, next_child
