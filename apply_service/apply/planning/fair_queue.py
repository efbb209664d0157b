"""A queue in which one owner's many entries do not delay another owner's single entry."""

from __future__ import annotations

from bisect import insort
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Entries of owners, who take turns; those of one owner by `rank`, lowest first.

    An owner who uses less of the shared resource goes before one who uses more.
    """

    def __init__(self, rank: Callable[[T], float]) -> None:
        self._rank = rank
        # The owner at the front is the next one; none of these lists is empty.
        self._entries: OrderedDict[Hashable, list[T]] = OrderedDict()
        self._num_entries = 0

    def __len__(self) -> int:
        return self._num_entries

    def num_of(self, owner: Hashable) -> int:
        """Number of waiting entries of an owner."""
        return len(self._entries.get(owner, ()))

    def first_ones(self) -> list[T]:
        """The first entry of each owner."""
        return [entries[0] for entries in self._entries.values()]

    def last_of_most(self) -> T:
        """The last entry of the owner with the most entries; the queue must not be empty."""
        return self._entries[max(self._entries, key=self.num_of)][-1]

    def push(self, owner: Hashable, entry: T) -> None:
        """Add an entry behind those of its owner with the same rank."""
        insort(self._entries.setdefault(owner, []), entry, key=self._rank)
        self._num_entries += 1

    def peek(self, num_held: Mapping[Hashable, int]) -> T:
        """The next entry: of the owner who holds least or has the turn. There must be one."""
        return self._entries[self._next_owner(num_held)][0]

    def pop(self, num_held: Mapping[Hashable, int]) -> T:
        """Take the entry that `peek` gives; its owner has had a turn."""
        owner = self._next_owner(num_held)
        entries = self._entries.pop(owner)
        entry = entries.pop(0)
        self._num_entries -= 1
        if entries:
            self._entries[owner] = entries
        return entry

    def take_all(self) -> list[T]:
        """Remove and return all entries."""
        entries = [entry for of_one in self._entries.values() for entry in of_one]
        self._entries.clear()
        self._num_entries = 0
        return entries

    def discard(self, owner: Hashable, entry: T) -> None:
        """Remove an entry, if it is in the queue."""
        entries = self._entries.get(owner)
        if entries is None or entry not in entries:
            return
        entries.remove(entry)
        self._num_entries -= 1
        if not entries:
            del self._entries[owner]

    def _next_owner(self, num_held: Mapping[Hashable, int]) -> Hashable:
        return min(self._entries, key=lambda owner: num_held.get(owner, 0))
