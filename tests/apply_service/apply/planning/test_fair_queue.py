"""Owners take turns, and the entries of one owner come by rank."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from apply_service.apply.planning.fair_queue import FairQueue

NOTHING: Counter[Hashable] = Counter()


def queue_of(*entries: tuple[str, float]) -> FairQueue[tuple[str, float]]:
    queue: FairQueue[tuple[str, float]] = FairQueue(lambda entry: entry[1])
    for entry in entries:
        queue.push(entry[0], entry)
    return queue


def test_owners_take_turns() -> None:
    queue = queue_of(("a", 1), ("a", 2), ("a", 3), ("b", 9), ("b", 8))
    popped = [queue.pop(NOTHING) for _ in range(len(queue))]
    assert popped == [("a", 1), ("b", 8), ("a", 2), ("b", 9), ("a", 3)]
    assert not queue


def test_who_holds_least_is_next() -> None:
    queue = queue_of(("a", 1), ("b", 2), ("c", 3))
    held: Counter[Hashable] = Counter(a=2, b=1)
    assert queue.peek(held) == ("c", 3)
    assert [queue.pop(held)[0] for _ in range(3)] == ["c", "b", "a"]


def test_what_is_taken_out_is_gone() -> None:
    queue = queue_of(("a", 1), ("a", 2), ("b", 3))
    queue.discard("a", ("a", 1))
    queue.discard("a", ("a", 1))
    queue.discard("c", ("c", 0))
    assert len(queue) == 2
    assert queue.num_of("a") == 1
    assert queue.first_ones() == [("a", 2), ("b", 3)]
    assert queue.take_all() == [("a", 2), ("b", 3)]
    assert not queue
    assert queue.num_of("b") == 0


def test_the_last_of_the_owner_with_the_most() -> None:
    assert queue_of(("a", 1), ("b", 5), ("b", 4)).last_of_most() == ("b", 5)
