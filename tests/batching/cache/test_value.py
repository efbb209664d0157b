"""A value is taken only as what it was written as: other bytes, names and secrets are found out."""

from __future__ import annotations

import random

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
    plain, ours, theirs = make_format(), make_format(secret=b"a"), make_format(secret=b"b")
    name = ours.name_chunk(b"h" * 32, TOKENS)
    assert ours.find_damage(sealed(ours, name), name) is None
    assert ours.find_damage(sealed(theirs, name), name) == "code"
    assert ours.find_damage(sealed(plain, name), name) == "code"
    keys = {form.redis_key(form.name_chunk(b"h" * 32, TOKENS)) for form in (plain, ours, theirs)}
    assert len(keys) == 3


def test_keys_carry_the_version() -> None:
    old, new = make_format(), make_format(version=2)
    name = old.name_chunk(b"h" * 32, TOKENS)
    assert old.redis_key(name).startswith(b"apply-kv:1:")
    assert new.redis_key(name).startswith(b"apply-kv:2:")
