"""Host memory: the least recently used goes first, what is in use stays, nothing is lost."""

from __future__ import annotations

import random

from batching.cache.host_tier import ChunkBuffer, HostTier

VALUE_BYTES = 8


def make_tier(max_chunks: int) -> HostTier:
    return HostTier(
        value_bytes=VALUE_BYTES,
        max_bytes=max_chunks * VALUE_BYTES + VALUE_BYTES // 2,
        allocate=lambda size: memoryview(bytearray(size)),
    )


def put(tier: HostTier, key: bytes) -> None:
    buffer = tier.try_acquire()
    assert buffer is not None
    buffer.memory[:1] = key
    tier.insert(key, buffer)
    tier.release([buffer])


def test_the_least_recently_used_chunk_gives_way() -> None:
    tier = make_tier(3)
    for key in (b"a", b"b", b"c"):
        put(tier, key)
    tier.release(tier.match([b"a"]))
    put(tier, b"d")
    assert [tier.has(key) for key in (b"a", b"b", b"c", b"d")] == [True, False, True, True]
    assert tier.num_bytes == 3 * VALUE_BYTES
    tier.check_invariants()


def test_a_match_ends_at_the_first_gap() -> None:
    tier = make_tier(4)
    for key in (b"a", b"c"):
        put(tier, key)
    found = tier.match([b"a", b"b", b"c"])
    assert [bytes(buffer.memory[:1]) for buffer in found] == [b"a"]
    tier.release(found)


def test_memory_that_the_system_lacks_is_a_lower_limit() -> None:
    num_given = 0

    def allocate(size: int) -> memoryview:
        nonlocal num_given
        if num_given == 2:
            raise MemoryError
        num_given += 1
        return memoryview(bytearray(size))

    tier = HostTier(value_bytes=VALUE_BYTES, max_bytes=9 * VALUE_BYTES, allocate=allocate)
    for key in (b"a", b"b", b"c"):
        put(tier, key)
    assert [tier.has(key) for key in (b"a", b"b", b"c")] == [False, True, True]
    held = [tier.try_acquire(), tier.try_acquire()]
    assert tier.try_acquire() is None
    tier.release(buffer for buffer in held if buffer is not None)
    tier.check_invariants()


def test_what_is_in_use_is_never_given_up() -> None:
    tier = make_tier(2)
    put(tier, b"a")
    put(tier, b"b")
    used = tier.match([b"a", b"b"])
    assert tier.try_acquire() is None
    tier.clear()
    assert tier.num_chunks == 2
    tier.release(used[:1])
    put(tier, b"c")
    assert not tier.has(b"a")
    assert bytes(used[1].memory[:1]) == b"b"
    tier.release(used[1:])
    tier.check_invariants()


def test_a_second_copy_of_a_chunk_is_free_again() -> None:
    tier = make_tier(2)
    put(tier, b"a")
    put(tier, b"a")
    tier.check_invariants()
    assert tier.num_chunks == 1
    put(tier, b"b")
    assert tier.has(b"a")


def test_any_order_of_operations_keeps_the_books() -> None:
    generator = random.Random(7)
    tier = make_tier(5)
    held: list[ChunkBuffer] = []
    for _ in range(3000):
        action = generator.randrange(4)
        if action == 0 and (buffer := tier.try_acquire()) is not None:
            key = b"%d" % generator.randrange(12)
            buffer.memory[:2] = key.ljust(2)
            if generator.random() < 0.8:
                tier.insert(key, buffer)
            held.append(buffer)
        elif action == 1:
            keys = [b"%d" % generator.randrange(12) for _ in range(3)]
            found = tier.match(keys)
            for key, buffer in zip(keys, found, strict=False):
                assert bytes(buffer.memory[:2]).rstrip() == key
            held += found
        elif held:
            tier.release([held.pop(generator.randrange(len(held)))])
    tier.release(held)
    tier.check_invariants()
