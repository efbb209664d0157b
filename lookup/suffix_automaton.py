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
        "_end_order",
        "_first_end",
        "_last",
        "_lengths",
        "_links",
        "_size",
        "_spans",
        "_transitions",
    )

    def __init__(self, token_ids: Iterable[int] = ()) -> None:
        self._transitions: list[dict[int, int]] = [{}]
        self._links: list[int] = [-1]
        self._lengths: list[int] = [0]
        self._first_end: list[int] = [0]
        self._last = ROOT
        self._size = 0
        self._end_order: list[int] = []
        self._spans: list[tuple[int, int]] = []
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
        """Number of end positions of `state`. Indexes the text if it has grown: O(n)."""
        begin, end = self._spans_now()[state]
        return end - begin

    def end_positions(self, state: int) -> list[int]:
        """All end positions of `state`, ascending. Indexes the text if it has grown: O(n).

        The root (the empty string) ends at every position from 1 to the length of the text.
        """
        begin, end = self._spans_now()[state]
        return sorted(self._end_order[begin:end])

    def _spans_now(self) -> list[tuple[int, int]]:
        """For each state its slice of `_end_order`, the ends in preorder of the link tree."""
        if len(self._spans) == len(self._links) and len(self._end_order) == self._size:
            return self._spans
        children: list[list[int]] = [[] for _ in self._links]
        for state, link in enumerate(self._links):
            if link >= 0:
                children[link].append(state)
        is_clone = self._clones()
        order: list[int] = []
        begins = [0] * len(self._links)
        spans = [(0, 0)] * len(self._links)
        stack = [ROOT]
        while stack:
            state = stack.pop()
            if state < 0:
                spans[~state] = (begins[~state], len(order))
                continue
            begins[state] = len(order)
            if state != ROOT and not is_clone[state]:
                order.append(self._first_end[state])
            stack.append(~state)
            stack.extend(children[state])
        self._end_order, self._spans = order, spans
        return spans

    def _clones(self) -> list[bool]:
        """True for each state that was made by a split: its length is below its first end."""
        return [length < end for length, end in zip(self._lengths, self._first_end, strict=True)]
