"""Prefix queries over a vocabulary, against a look at every token."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lookup.vocabulary_index import VocabularyIndex

SMALL = st.binary(max_size=4).map(lambda text: bytes(byte % 3 for byte in text))
EDGES = st.sampled_from([b"\xff", b"\xff\xff", b"\xfe\xff", b"\x00", b"\x00\xff", b""])
VOCABULARIES = st.lists(SMALL | EDGES, max_size=30)


@given(token_bytes=VOCABULARIES, text=SMALL | EDGES)
def test_ranges_hold_the_tokens_that_begin_like_the_text(
    token_bytes: list[bytes], text: bytes
) -> None:
    index = VocabularyIndex(token_bytes)
    prefix = index.root
    for size, byte in enumerate(text, 1):
        alike = [spelling for spelling in token_bytes if spelling.startswith(text[:size])]
        longer = index.extend(prefix, byte)
        assert (longer is None) == (not alike)
        if longer is None:
            return
        prefix = longer
        assert prefix.stop - prefix.start == len(alike)
        exact = [number for number, spelling in enumerate(token_bytes) if spelling == text[:size]]
        assert index.spelled(prefix) == exact


@given(token_bytes=VOCABULARIES, text=SMALL | EDGES)
def test_single_questions(token_bytes: list[bytes], text: bytes) -> None:
    index = VocabularyIndex(token_bytes)
    expected = any(s.startswith(text) and len(s) > len(text) for s in token_bytes)
    assert index.has_longer(text) == expected
    assert index.missing_bytes(text) == sorted({b for b in text if bytes([b]) not in token_bytes})
    assert index.max_token_bytes == max(map(len, token_bytes), default=0)


@given(token_bytes=VOCABULARIES, text=st.binary(max_size=12).map(lambda t: bytes(b % 3 for b in t)))
def test_the_longest_matches_spell_the_text_as_far_as_possible(
    token_bytes: list[bytes], text: bytes
) -> None:
    index = VocabularyIndex(token_bytes)
    at = 0
    for token_id in index.longest_matches(text):
        spelling = token_bytes[token_id]
        assert text.startswith(spelling, at)
        assert not any(text.startswith(s, at) and len(s) > len(spelling) for s in token_bytes)
        at += len(spelling)
    assert at == len(text) or not any(s and text.startswith(s, at) for s in token_bytes)


def test_tokens_without_bytes_are_nowhere() -> None:
    index = VocabularyIndex([b"", b"a", b""])
    assert index.root.stop == 1
    assert index.bytes_of(0) == index.bytes_of(17) == index.bytes_of(-1) == b""
    assert index.longest_matches(b"aab") == [1, 1]
