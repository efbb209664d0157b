"""A grammar has the texts that it was made of and no other."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st
from writer_server import answers_of

from apply_service.apply.writer.grammar import MAX_GRAMMAR_CHARACTERS, grammar_of

TEXTS = st.lists(
    st.text(st.sampled_from('ab"\\\n\r\t(|) é\x01\x7f'), min_size=1, max_size=8),
    min_size=1,
    max_size=6,
)


@given(TEXTS)
@example(["a", "aa", "aaa"])
@example(["ab", "b"])
@example(["xay", "xby", "xy"])
def test_a_grammar_has_its_texts_and_no_other(texts: list[str]) -> None:
    grammar = grammar_of(texts)
    assert grammar is not None
    assert sorted(answers_of(grammar)) == sorted(set(texts))


def test_what_all_share_stands_once() -> None:
    texts = ["x" * 500 + middle + "y" * 500 for middle in ("one", "another", "third")]
    grammar = grammar_of(texts)
    assert grammar is not None
    assert len(grammar) < 1100


def test_a_text_that_no_grammar_holds_has_none() -> None:
    assert grammar_of(["a\0", "b"]) is None
    assert grammar_of(["a" * MAX_GRAMMAR_CHARACTERS, "b"]) is None
