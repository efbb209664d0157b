"""The one decoder of JSON bodies: what is too deep for it, and what it does with the rest."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apply_service.http.files_body import FilesBody
from apply_service.http.json_body import MAX_DEPTH, decode_body
from apply_service.http.problems import ProblemError
from apply_service.http.schemas import ApplyBody

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


NAMES = st.text(alphabet=st.sampled_from("ab.\udc00\udfff"), min_size=1, max_size=3)
halves = st.recursive(
    st.none() | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
)


@given(value=halves, body_type=st.sampled_from([ApplyBody, FilesBody, object]))
def test_a_half_pair_is_named_wherever_it_is(value: Any, body_type: type) -> None:
    body = json.dumps({"original": "", "update": value, "files": [{"path": value}]}).encode()
    if b"\\ud" not in body:
        return
    with pytest.raises(ProblemError) as caught:
        decode_body(body, body_type)
    problem = caught.value.problem
    assert msgspec.json.decode(msgspec.json.encode(problem))["status"] == 400
    if problem.code == "lone-surrogate":
        assert "has a lone surrogate at character" in problem.detail
        assert problem.field is not None
        assert ("the name of the member" in problem.detail) == ("\\ud" in problem.field)
    else:
        assert problem.code in ("invalid-field", "unknown-field")


@pytest.mark.parametrize(
    ("body", "detail", "field"),
    [
        (
            r'{"original\ud800": "a"}',
            "the name of the member original.* at character 8",
            r"original\ud800",
        ),
        (r'{"update": [{"a": {"b\ud800": 1}}]}', "the name of the member", r"update[0].a.b\ud800"),
        (r'{"update": {"value": ["\udc00"]}}', "value.0. has .* at character 0", "update.value[0]"),
        (r'{"\ud800": "\ud800"}', "the name of the member", r"\ud800"),
        (r'"\ud800"', "the body has", None),
    ],
)
def test_half_pairs_have_their_place(body: str, detail: str, field: str | None) -> None:
    with pytest.raises(ProblemError, match=detail) as caught:
        decode_body(body.encode(), ApplyBody)
    assert (caught.value.problem.code, caught.value.problem.field) == ("lone-surrogate", field)


@pytest.mark.parametrize(
    "body",
    [
        {"x" * 1_000_000: 1},
        {"original": "", "update": "", "scope": "x" * 1_000_000},
        {"original": {"x" * 1_000_000: 1}, "update": ""},
        {"original": "", "update": "", "x" * 1000: {"x" * 1000: "\ud800"}},
    ],
)
def test_little_of_a_body_comes_back(body: dict[str, Any]) -> None:
    with pytest.raises(ProblemError) as caught:
        decode_body(json.dumps(body).encode(), ApplyBody)
    problem = caught.value.problem
    assert len(msgspec.json.encode(problem)) < 3000
    assert len(problem.field or "") <= 200


def test_a_lone_surrogate_beside_a_very_long_number() -> None:
    assert problem_code(b'["\\ud800", %s]' % (b"1" * 5000)) == "invalid-json"
