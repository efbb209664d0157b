"""White space that the answer replaces: tried, held, and forgotten when the answer says so."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lookup.edit_proposer import Respacing

TOKENS = st.integers(0, 5)


def with_replacement(expected: int, written: int) -> Respacing:
    respacing = Respacing({0, 1, 2})
    respacing.attempt(expected, written)
    respacing.settle(is_right=True)
    return respacing


def test_only_white_space_may_stand_for_white_space() -> None:
    respacing = Respacing({0, 1})
    assert respacing.may_replace(0, 1)
    assert not respacing.may_replace(0, 2)
    assert not respacing.may_replace(2, 1)


def test_a_replacement_holds_once_a_token_behind_it_agrees() -> None:
    respacing = Respacing({0, 1})
    respacing.attempt(0, 1)
    assert list(respacing.apply([0, 5, 0])) == [0, 5, 0]
    respacing.settle(is_right=False)
    respacing.settle(is_right=True)
    assert list(respacing.apply([0, 5, 0])) == [0, 5, 0]
    respacing.attempt(0, 1)
    respacing.settle(is_right=True)
    assert list(respacing.apply([0, 5, 0])) == [1, 5, 1]


def test_the_answer_may_go_back_to_what_the_reference_has() -> None:
    respacing = with_replacement(0, 1)
    assert respacing.num_agreed([5, 0, 4, 0], [5, 1, 4, 0]) == 4
    assert list(respacing.apply([0])) == [0]


@given(
    copied=st.lists(TOKENS, max_size=12),
    written=st.lists(TOKENS, max_size=12),
    expected=st.integers(0, 2),
    new=st.integers(0, 2),
)
def test_what_agrees_is_the_reference_with_or_without_the_replacement(
    copied: list[int], written: list[int], expected: int, new: int
) -> None:
    copied, written = copied[: len(written)], written[: len(copied)]
    num_agreed = with_replacement(expected, new).num_agreed(copied, written)
    is_replaced = True
    for own, token in zip(copied[:num_agreed], written, strict=False):
        assert token == own or (is_replaced and (own, token) == (expected, new))
        is_replaced &= own != expected or token == new
    if num_agreed < len(copied):
        own, token = copied[num_agreed], written[num_agreed]
        assert own != token
        assert not (is_replaced and (own, token) == (expected, new))
