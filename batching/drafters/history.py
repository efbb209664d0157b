"""History: what a tenant's requests have read and written, searched for what comes next.

Source of the idea: Oliaro et al., "SuffixDecoding: Extreme Speculative Decoding for Emerging AI
Applications", arXiv 2411.04975, which keeps suffix trees. Here texts lie in a ring of tokens, the
oldest of which are overwritten, and hashes of their last tokens lead to the places to go on from.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from batching.drafters.drafter import DraftAsk, Features, ObservedRequest
from batching.drafters.target import TargetModel
from lookup.draft_tree import grow_tree
from lookup.proposer import EMPTY_DRAFT, Draft

MAX_TOKENS = 1 << 20
MAX_TENANTS = 1024
# So many last tokens lead to places, the most that lead to any come first.
_ORDERS = (12, 6, 3)
_MAX_PLACES = 64
_MAX_MATCH = 32
_MAX_NODES = 16
# Odd 64-bit numbers, for hashes.
_TOKEN_FACTOR = 0x9E3779B97F4A7C15
_TENANT_FACTOR = 0xD6E8FEB86659FD93
_MASK = (1 << 64) - 1

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Continuations:
    """What followed the longest match, [num_places, depth] int64, padded with -1."""

    match_length: int
    token_ids: Ints


class TextRing:
    """The last `max_tokens` tokens of all texts, each linked with its neighbours in its text.

    A position counts all tokens ever written, from 1; 0 stands for none. It is valid as long as its
    token is not overwritten. Links stay within a text, and a text belongs to one tenant.
    """

    def __init__(self, max_tokens: int) -> None:
        self._capacity = max_tokens
        self._size = 0
        self._tokens, self._tenants, self._before, self._next = self._zeros(4, max_tokens)
        self._bits = max(1, (max_tokens - 1).bit_length())
        # By order: the last position with each hash, and the position with the same one before.
        self._heads = dict(zip(_ORDERS, self._zeros(len(_ORDERS), 1 << self._bits), strict=True))
        self._earlier = dict(zip(_ORDERS, self._zeros(len(_ORDERS), max_tokens), strict=True))
        self._factors = {order: _powers(order) for order in _ORDERS}

    @staticmethod
    def _zeros(count: int, size: int) -> list[Ints]:
        return [np.zeros(size, dtype=np.int64) for _ in range(count)]

    def append(
        self, token_ids: Sequence[int], *, tenant: int, last: int, tail: Sequence[int]
    ) -> int:
        """Go on with a text; the position of its last token.

        last: the position of the text's last token so far, 0 for a new text
        tail: the last tokens of the text so far
        """
        first = self._size + 1
        self._size += len(token_ids)
        token_ids = token_ids[-self._capacity :]
        positions = np.arange(self._size - len(token_ids) + 1, self._size + 1)
        slots = positions % self._capacity
        self._tokens[slots] = token_ids
        self._tenants[slots] = tenant
        self._before[slots] = positions - 1
        self._next[slots] = positions + 1
        self._next[slots[-1]] = 0
        if positions[0] == first:
            is_valid = last > self._oldest
            self._before[slots[0]] = last if is_valid else 0
            if is_valid:
                self._next[last % self._capacity] = first
            token_ids = [*tail, *token_ids]
        self._index(np.array(token_ids), positions, tenant)
        return self._size

    def find(self, context: Sequence[int], *, tenant: int, depth: int) -> Continuations | None:
        """What followed the tenant's latest places with the longest match; None without any."""
        for order in _ORDERS:
            if len(context) < order:
                continue
            places = self._places(order, context[-order:], tenant)
            lengths = self._match_lengths(places, context, tenant)
            is_found = (lengths >= order) & (self._next[places % self._capacity] > 0)
            if is_found.any():
                best = int(lengths[is_found].max())
                followed = places[is_found & (lengths == best)]
                return Continuations(best, self._follow(followed, depth))
        return None

    @property
    def _oldest(self) -> int:
        """The last position that is not valid any more."""
        return max(0, self._size - self._capacity)

    def _index(self, tokens: Ints, positions: Ints, tenant: int) -> None:
        """Make the last tokens of a text findable. positions: of the last of `tokens`"""
        for order in _ORDERS:
            count = min(len(positions), len(tokens) - order + 1)
            if count < 1:
                continue
            windows = sliding_window_view(tokens, order)[-count:]
            hashes = self._hashes(order, windows, tenant)
            found, heads = positions[-count:], self._heads[order]
            earlier = heads[hashes]
            if count > 1:
                by_hash = np.argsort(hashes, kind="stable")
                is_same = hashes[by_hash[1:]] == hashes[by_hash[:-1]]
                earlier[by_hash[1:][is_same]] = found[by_hash[:-1][is_same]]
            self._earlier[order][found % self._capacity] = earlier
            np.maximum.at(heads, hashes, found)

    def _hashes(self, order: int, windows: Ints, tenant: int) -> Ints:
        """Hashes [n] below the number of heads. windows: [n, order]"""
        keys = windows.astype(np.uint64) @ self._factors[order]
        keys += np.uint64(tenant * _TENANT_FACTOR & _MASK)
        keys *= np.uint64(_TOKEN_FACTOR)
        return (keys >> np.uint64(64 - self._bits)).astype(np.int64)

    def _places(self, order: int, context: Sequence[int], tenant: int) -> Ints:
        """The latest places with the hash of the context, which others may have as well."""
        (head,) = self._hashes(order, np.array([context]), tenant)
        position, earlier = int(self._heads[order][head]), self._earlier[order]
        places: list[int] = []
        while position > self._oldest and len(places) < _MAX_PLACES:
            places.append(position)
            position = int(earlier[position % self._capacity])
        return np.array(places, dtype=np.int64)

    def _match_lengths(self, places: Ints, context: Sequence[int], tenant: int) -> Ints:
        """How many last tokens of the context stand before and at each place of the tenant."""
        lengths = np.zeros(len(places), dtype=np.int64)
        is_equal = self._tenants[places % self._capacity] == tenant
        for token_id in reversed(context[-_MAX_MATCH:]):
            slots = places % self._capacity
            is_equal &= (places > self._oldest) & (self._tokens[slots] == token_id)
            if not is_equal.any():
                break
            lengths += is_equal
            places = self._before[slots]
        return lengths

    def _follow(self, places: Ints, depth: int) -> Ints:
        followed = np.full((len(places), depth), -1, dtype=np.int64)
        for at in range(depth):
            places = np.where(places > 0, self._next[places % self._capacity], 0)
            followed[:, at] = np.where(places > 0, self._tokens[places % self._capacity], -1)
        return followed


def _powers(order: int) -> NDArray[np.uint64]:
    return np.array([pow(_TOKEN_FACTOR, at + 1, 1 << 64) for at in range(order)], dtype=np.uint64)


@dataclass(slots=True)
class _Text:
    """Where the text of a live request goes on. num_seen: its tokens up to there."""

    last: int
    num_seen: int
    tail: list[int]


class HistoryDrafter:
    """Drafts what followed the longest match in the tenant's own texts, by its counts.

    All tenants share the room for tokens. A tenant not heard of for long is forgotten.
    """

    name = "history"
    taps: Sequence[int] = ()
    kv = None

    def __init__(
        self,
        _target: TargetModel | None = None,
        *,
        max_tokens: int = MAX_TOKENS,
        max_tenants: int = MAX_TENANTS,
    ) -> None:
        self._ring = TextRing(max_tokens)
        self._max_tenants = max_tenants
        # Numbers are not given twice, so nobody gets the texts of a forgotten one.
        self._tenants: OrderedDict[bytes, int] = OrderedDict()
        self._num_numbers = 0
        self._texts: dict[str, _Text] = {}

    def observe(self, requests: Sequence[ObservedRequest], features: Features) -> None:
        """Append the tokens that are new; after a preemption some come again."""
        for one in requests:
            text = self._texts.setdefault(one.request_id, _Text(0, one.start, []))
            if one.start > text.num_seen:  # those between came from the prefix cache
                text.last, text.num_seen, text.tail = 0, one.start, []
            new = one.token_ids[text.num_seen - one.start :]
            if not new:
                continue
            tenant = self._tenant(one.cache_salt)
            text.last = self._ring.append(new, tenant=tenant, last=text.last, tail=text.tail)
            text.num_seen += len(new)
            text.tail = [*text.tail, *new][-(_ORDERS[0] - 1) :]

    def draft(self, asks: Sequence[DraftAsk]) -> list[Draft]:
        """The tree of what followed, the most frequent first."""
        return [self._tree(ask) for ask in asks]

    def forget(self, request_id: str) -> None:
        """The text stays, and ends here."""
        self._texts.pop(request_id, None)

    def _tenant(self, cache_salt: bytes) -> int:
        """The tenant's number, which it keeps for as long as it is heard of."""
        if cache_salt not in self._tenants:
            self._num_numbers += 1
            self._tenants[cache_salt] = self._num_numbers
            if len(self._tenants) > self._max_tenants:
                self._tenants.popitem(last=False)
        self._tenants.move_to_end(cache_salt)
        return self._tenants[cache_salt]

    def _tree(self, ask: DraftAsk) -> Draft:
        tenant = self._tenants.get(ask.cache_salt)
        if tenant is None:
            return EMPTY_DRAFT
        context = ask.token_ids[-_MAX_MATCH:]
        found = self._ring.find(context, tenant=tenant, depth=ask.max_depth)
        if found is None:
            return EMPTY_DRAFT
        ways: dict[tuple[int, ...], list[list[int]]] = {(): found.token_ids.tolist()}

        def children(way: Sequence[int]) -> list[tuple[int, float]]:
            depth, followed = len(way), ways[tuple(way)]
            counts = Counter(row[depth] for row in followed if row[depth] >= 0)
            for row in followed:
                ways.setdefault((*way, row[depth]), []).append(row)
            return [(token, count / len(followed)) for token, count in counts.most_common()]

        num_nodes = min(_MAX_NODES, ask.max_nodes)
        draft = grow_tree(
            children, max_nodes=num_nodes, max_depth=ask.max_depth, reference=self.name
        )
        return replace(draft, match_length=found.match_length)
