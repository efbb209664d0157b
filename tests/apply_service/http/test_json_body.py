"""The one decoder of JSON bodies: what is too deep for it, and what it does with the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apply_service.http.json_body import MAX_DEPTH, decode_body
from apply_service.http.problems import ProblemError

json_values = st.recursive(
    st.none() | st.integers(-(1 << 60), 1 << 60) | st.text(alphabet='ab"\\[]{},:é', max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(alphabet='a"\\[{', max_size=4), inner, max_size=4)
    ),
    max_leaves=20,
)


def problem_code(body: bytes) -> str:
    """The code of what is wrong with a body."""
    with pytest.raises(ProblemError) as caught:
        decode_body(body, object)
    assert caught.value.problem.status == 400
    return caught.value.problem.code


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_the_limit_of_depth_is_exact(opening: bytes, closing: bytes) -> None:
    fitting = opening * MAX_DEPTH + b"1" + closing * MAX_DEPTH
    assert decode_body(fitting, object) == json.loads(fitting)
    assert problem_code(opening + fitting + closing) == "too-deeply-nested"
    assert problem_code(opening * 200_000) == "too-deeply-nested"


@given(value=json_values)
def test_brackets_in_strings_are_not_depth(value: Any) -> None:
    """Beside a thousand brackets, in strings and in flat arrays, any JSON is what it was."""
    wide = ["[{" * 200, '"\\' + "[" * 200, [[]] * 300, value]
    assert decode_body(json.dumps(wide).encode(), object) == wide


@given(value=json_values, depth=st.integers(MAX_DEPTH + 1, 3 * MAX_DEPTH))
def test_no_string_hides_depth(value: Any, depth: int) -> None:
    deep = b"[" * depth + b"]" * depth
    body = b"[%s, %s]" % (json.dumps(value).encode(), deep)
    assert problem_code(body) == "too-deeply-nested"


def test_a_lone_surrogate_beside_a_very_long_number() -> None:
    assert problem_code(b'["\\ud800", %s]' % (b"1" * 5000)) == "invalid-json"
