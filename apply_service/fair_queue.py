"""A queue in which nobody's many entries keep the one of somebody else waiting."""

from __future__ import annotations

from bisect import insort
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Entries of owners, who take turns; those of one owner by `rank`, lowest first."""

    def __init__(self, rank: Callable[[T], float]) -> None:
        self._rank = rank
        # The owner at the front is the next one; none of these lists is empty.
        self._entries: OrderedDict[Hashable, list[T]] = OrderedDict()
        self._num_entries = 0

    def __len__(self) -> int:
        return self._num_entries

    def num_of(self, owner: Hashable) -> int:
        """How many entries of an owner wait."""
        return len(self._entries.get(owner, ()))

    def first_ones(self) -> list[T]:
        """The first entry of each owner."""
        return [entries[0] for entries in self._entries.values()]

    def last_of_most(self) -> T:
        """The last entry of the owner with the most; there must be one."""
        return self._entries[max(self._entries, key=self.num_of)][-1]

    def push(self, owner: Hashable, entry: T) -> None:
        """Add an entry, behind those of its owner with the same rank."""
        insort(self._entries.setdefault(owner, []), entry, key=self._rank)
        self._num_entries += 1

    def pop(self) -> T:
        """Take the first entry of the owner whose turn it is; there must be one."""
        owner, entries = self._entries.popitem(last=False)
        entry = entries.pop(0)
        self._num_entries -= 1
        if entries:
            self._entries[owner] = entries
        return entry

    def take_all(self) -> list[T]:
        """All entries, which wait no longer."""
        entries = [entry for of_one in self._entries.values() for entry in of_one]
        self._entries.clear()
        self._num_entries = 0
        return entries

    def discard(self, owner: Hashable, entry: T) -> None:
        """Take an entry out, if it waits here."""
        entries = self._entries.get(owner)
        if entries is None or entry not in entries:
            return
        entries.remove(entry)
        self._num_entries -= 1
        if not entries:
            del self._entries[owner]
