"""A value is taken only as what it was written as: other bytes, names and secrets are found out."""

from __future__ import annotations

import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batching.cache.value import HEADER_BYTES, ChunkName, ValueFormat

NUM_TOKENS, PAYLOAD_BYTES = 4, 300
TOKENS = [5, 6, 7, 8]
CHECKED_BYTES = 112  # fields and checksum; the code follows


def make_format(namespace: bytes = b"model", **changes: object) -> ValueFormat:
    options: dict[str, object] = {"num_tokens": NUM_TOKENS, "payload_bytes": PAYLOAD_BYTES}
    return ValueFormat(namespace, **{**options, **changes})  # type: ignore[arg-type]


def sealed(value_format: ValueFormat, name: ChunkName) -> memoryview:
    value = memoryview(bytearray(random.Random(0).randbytes(value_format.value_bytes)))
    value_format.seal(value, name)
    return value


def test_a_sealed_value_is_sound_and_keeps_its_payload() -> None:
    value_format = make_format()
    name = value_format.name_chunk(b"h" * 32, TOKENS)
    value = sealed(value_format, name)
    payload = random.Random(0).randbytes(value_format.value_bytes)[HEADER_BYTES:]
    assert value_format.payload(value) == payload
    assert value_format.find_damage(value, name) is None


@given(position=st.integers(0, HEADER_BYTES + PAYLOAD_BYTES - 1), bit=st.integers(0, 7))
def test_no_bit_that_counts_can_flip(position: int, bit: int) -> None:
    value_format = make_format()
    name = value_format.name_chunk(b"h" * 32, TOKENS)
    value = sealed(value_format, name)
    value[position] ^= 1 << bit
    is_unused = CHECKED_BYTES <= position < HEADER_BYTES
    assert (value_format.find_damage(value, name) is None) == is_unused


@pytest.mark.parametrize(
    ("writer", "damage"),
    [
        (make_format(b"other model"), "layout"),
        (make_format(version=2), "version"),
        (make_format(num_tokens=8), "length"),
    ],
)
def test_what_others_wrote_is_named(writer: ValueFormat, damage: str) -> None:
    reader = make_format()
    name = reader.name_chunk(b"h" * 32, TOKENS)
    assert reader.find_damage(sealed(writer, name), name) == damage


def test_other_names_other_tokens_and_other_lengths() -> None:
    value_format = make_format()
    name = value_format.name_chunk(b"h" * 32, TOKENS)
    value = sealed(value_format, name)
    other_key = value_format.name_chunk(b"i" * 32, TOKENS)
    other_tokens = ChunkName(
        name.key, value_format.name_chunk(b"h" * 32, [5, 6, 7, 9]).token_digest
    )
    assert value_format.find_damage(value, other_key) == "key"
    assert value_format.find_damage(value, other_tokens) == "tokens"
    assert value_format.find_damage(value[:-1], name) == "length"
    assert value_format.find_damage(memoryview(bytearray(len(value))), name) == "magic"


def test_a_secret_signs_values_and_hides_names() -> None:
    plain, ours, theirs = make_format(), make_format(secrets=[b"a"]), make_format(secrets=[b"b"])
    name = ours.name_chunk(b"h" * 32, TOKENS)
    assert ours.find_damage(sealed(ours, name), name) is None
    assert ours.find_damage(sealed(theirs, name), name) == "key"
    assert ours.find_damage(sealed(plain, name), name) == "key"
    keys = [form.redis_key(form.name_chunk(b"h" * 32, TOKENS)) for form in (plain, ours, theirs)]
    assert len(set(keys)) == 3
    assert name.key.hex().encode() in keys[0]
    assert name.key.hex().encode() not in keys[1]


@given(position=st.integers(0, HEADER_BYTES + PAYLOAD_BYTES - 1), bit=st.integers(0, 7))
def test_whoever_mends_the_checksum_still_lacks_the_code(position: int, bit: int) -> None:
    ours = make_format(secrets=[b"a"])
    name = ours.name_chunk(b"h" * 32, TOKENS)
    value = sealed(ours, name)
    value[position] ^= 1 << bit
    struct.pack_into("<Q", value, CHECKED_BYTES - 8, ours._checksum(value))
    is_unused = CHECKED_BYTES + 32 <= position < HEADER_BYTES
    is_checksum = CHECKED_BYTES - 8 <= position < CHECKED_BYTES
    assert (ours.find_damage(value, name) is None) == (is_unused or is_checksum)


def test_a_value_is_taken_under_its_own_key_alone() -> None:
    ours = make_format(secrets=[b"a"])
    mine, other = (ours.name_chunk(bytes([n]) * 32, TOKENS) for n in (1, 2))
    replayed = sealed(ours, other)
    assert ours.find_damage(replayed, mine) == "key"
    # Both headers are known to whoever reads Redis; the code belongs to one of them.
    replayed[:CHECKED_BYTES] = sealed(ours, mine)[:CHECKED_BYTES]
    struct.pack_into("<Q", replayed, CHECKED_BYTES - 8, ours._checksum(replayed))
    replayed[HEADER_BYTES:] = sealed(ours, other)[HEADER_BYTES:]
    assert ours.find_damage(replayed, mine) == "code"


def test_a_new_secret_signs_and_the_old_one_is_accepted() -> None:
    old, new = make_format(secrets=[b"old"]), make_format(secrets=[b"new", b"old"])
    name = new.name_chunk(b"h" * 32, TOKENS)
    assert old.name_chunk(b"h" * 32, TOKENS) == name
    assert list(new.generations) == [0, 1]
    assert new.redis_key(name, 1) == old.redis_key(name) != new.redis_key(name)
    assert new.find_damage(sealed(old, name), name, 1) is None
    assert new.find_damage(sealed(new, name), name) is None
    assert new.find_damage(sealed(new, name), name, 1) == "key"


def test_keys_carry_the_version() -> None:
    old, new = make_format(), make_format(version=2)
    name = old.name_chunk(b"h" * 32, TOKENS)
    assert old.redis_key(name).startswith(b"apply-kv:1:")
    assert new.redis_key(name).startswith(b"apply-kv:2:")
