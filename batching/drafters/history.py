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
from numpy.typing import NDArray

from batching.drafters.drafter import DraftAsk, Features, ObservedRequest
from batching.drafters.target import TargetModel
from lookup.draft_tree import grow_tree
from lookup.proposer import EMPTY_DRAFT, Draft

MAX_TOKENS = 1 << 20
MAX_TENANTS = 1024
# So many last tokens lead to places; the most of them that lead to any count. On source files of
# this repository (240k tokens, names in pieces) a step brings a sixth less without the order 2, and
# other orders and more places change less than a hundredth.
_ORDERS = (2, 6, 16)
_MAX_PLACES = 64
_MAX_MATCH = 32
_MAX_NODES = 16
# An odd number of 64 bits, for hashes.
_FACTOR = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Continuations:
    """What followed the longest match. token_ids: [num_places, depth] int64, padded with -1"""

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
        self._tokens, self._tenants, self._before, self._next = (
            np.zeros(max_tokens, dtype=np.int64) for _ in range(4)
        )
        num_bits = max(1, (max_tokens - 1).bit_length())
        self._shift = 64 - num_bits
        # By order: the last position with each hash, and the position with the same one before.
        self._heads = [_positions(1 << num_bits) for _ in _ORDERS]
        self._earlier = [_positions(max_tokens) for _ in _ORDERS]

    def append(self, token_id: int, *, tenant: int, last: int, tail: Sequence[int]) -> int:
        """Go on with a text by one token; the position of that.

        last: the position of the text's last token so far, 0 for a new text
        tail: the last tokens of the text, with the new one
        """
        self._size += 1
        slot = self._size % self._capacity
        self._tokens[slot], self._tenants[slot], self._next[slot] = token_id, tenant, 0
        self._before[slot] = last = last if last > self._oldest else 0
        if last:
            self._next[last % self._capacity] = self._size
        hashes = self._hashes(tail, tenant)
        for head, heads, earlier in zip(hashes, self._heads, self._earlier, strict=False):
            earlier[slot], heads[head] = heads[head], self._size
        return self._size

    def find(self, context: Sequence[int], *, tenant: int, depth: int) -> Continuations | None:
        """What followed the tenant's latest places with the longest match; None without any."""
        hashes = self._hashes(context, tenant)
        for index in reversed(range(len(hashes))):
            places = self._places(index, hashes[index])
            lengths = self._match_lengths(places, context, tenant)
            is_found = (lengths >= _ORDERS[index]) & (self._next[places % self._capacity] > 0)
            if is_found.any():
                best = int(lengths[is_found].max())
                followed = places[is_found & (lengths == best)]
                return Continuations(best, self._follow(followed, depth))
        return None

    @property
    def _oldest(self) -> int:
        """The last position that is not valid any more."""
        return max(0, self._size - self._capacity)

    def _hashes(self, tail: Sequence[int], tenant: int) -> list[int]:
        """The place in `heads` of the last tokens, for each order that there are enough for."""
        hashes: list[int] = []
        mixed, stop = tenant, 0
        for order in _ORDERS:
            if order > len(tail):
                break
            for at in range(stop, order):
                mixed = (mixed ^ tail[-1 - at]) * _FACTOR & _MASK
                mixed ^= mixed >> 29
            stop = order
            hashes.append((mixed * _FACTOR & _MASK) >> self._shift)
        return hashes

    def _places(self, index: int, head: int) -> Ints:
        """The latest places with a hash, which other tokens may have as well."""
        position, earlier = self._heads[index][head], self._earlier[index]
        places: list[int] = []
        while position > self._oldest and len(places) < _MAX_PLACES:
            places.append(position)
            position = earlier[position % self._capacity]
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


def _positions(count: int) -> memoryview[int]:
    """Positions that are read one by one, all 0; their memory is taken as it is written."""
    return np.zeros(count, dtype=np.int64).data


@dataclass(slots=True)
class _Text:
    """Where the text of a live request goes on. num_seen: its tokens up to there."""

    last: int
    num_seen: int
    tail: list[int]


class HistoryDrafter:
    """Drafts what followed the longest match in the tenant's own texts, by its counts.

    All tenants share the room, some 90 bytes a token: the oldest tokens go first, whosever they
    are. So does the tenant not heard of for longest. What the prefix cache has of a prompt is known
    only if it was computed here.
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
            tenant = self._tenant(one.cache_salt)
            for token_id in one.token_ids[text.num_seen - one.start :]:
                text.tail = [*text.tail[1 - _ORDERS[-1] :], token_id]
                text.num_seen += 1
                text.last = self._ring.append(
                    token_id, tenant=tenant, last=text.last, tail=text.tail
                )

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
