"""What is remembered of keys is forgotten in time, and is never more than so much."""

from __future__ import annotations

from batching.cache.redis.known_keys import KNOWN_S, KnownKeys


def test_a_key_is_known_for_a_minute() -> None:
    now = [0.0]
    known = KnownKeys(clock=lambda: now[0])
    known.add(b"a")
    now[0] = KNOWN_S - 1
    assert known.has(b"a")
    assert not known.has(b"b")
    now[0] = KNOWN_S
    assert not known.has(b"a")
    known.add(b"a")
    known.forget(b"a")
    assert not known.has(b"a")


def test_damage_is_told_once() -> None:
    known = KnownKeys()
    known.add(b"a")
    known.add_damaged(b"a")
    assert not known.has(b"a")
    assert known.take_damaged(b"a")
    assert not known.take_damaged(b"a")


def test_the_oldest_of_too_many_are_forgotten() -> None:
    known = KnownKeys(max_keys=2)
    for key in (b"a", b"b", b"a", b"c"):
        known.add(key)
        known.add_damaged(key + b"!")
    assert [known.has(key) for key in (b"a", b"b", b"c")] == [True, False, True]
    assert not known.take_damaged(b"a!") or not known.take_damaged(b"b!")
