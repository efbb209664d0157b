"""What counts as a letter in an answer, and what does not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apply_service.apply.judge.answer_form import FORMS, AnswerForm, FormName
from apply_service.apply.judge.reply import Letter, read_letter

LETTERS = ("A", "B", "C")


def form_of(name: FormName) -> AnswerForm:
    return next(form for form in FORMS if form.name == name)


def payload(
    content: object, tokens: list[tuple[str, float, dict[str, float]]] | None = None
) -> bytes:
    logprobs: Any = None
    if tokens is not None:
        logprobs = {
            "content": [
                {
                    "token": token,
                    "logprob": logprob,
                    "top_logprobs": [{"token": one, "logprob": p} for one, p in top.items()],
                }
                for token, logprob, top in tokens
            ]
        }
    choice = {"message": {"role": "assistant", "content": content}, "logprobs": logprobs}
    return json.dumps({"choices": [choice]}).encode()


@pytest.mark.parametrize(
    ("name", "content", "letter"),
    [
        ("choice", "B", "B"),
        ("choice", " B\n", "B"),
        ("choice", "B.", None),
        ("choice", "D", None),
        ("choice", "AB", None),
        ("choice", "", None),
        ("choice", None, None),
        ("grammar", "C", "C"),
        ("grammar", "b", None),
        ("json_schema", '{"answer": "A"}', "A"),
        ("json_schema", '{\n "answer":"A"\n}', "A"),
        ("json_schema", '{"answer": "D"}', None),
        ("json_schema", '{"answer": ["A"]}', None),
        ("json_schema", '{"answer": "A", "why": "B"}', None),
        ("json_schema", "A", None),
        ("json_object", '{"answer": "A"', None),
        ("text", "A", "A"),
        ("text", " (C) ", "C"),
        ("text", "**B.**", "B"),
        ("text", "The answer is B", None),
        ("text", "A or B", None),
        ("text", "A result that keeps", None),
    ],
)
def test_a_letter_stands_alone(name: FormName, content: object, letter: str | None) -> None:
    found = read_letter(payload(content), form_of(name), LETTERS)
    assert found == (None if letter is None else Letter(letter, None))


def test_the_margin_is_between_the_two_likeliest_letters() -> None:
    top = {"A": -0.1, " B": -2.0, "The": -1.0}
    found = read_letter(payload("A", [("A", -0.1, top)]), form_of("choice"), LETTERS)
    assert found is not None
    assert found.margin == pytest.approx(0.739, abs=0.001)


def test_a_letter_is_found_among_the_tokens_of_json() -> None:
    tokens: list[tuple[str, float, dict[str, float]]] = [
        ('{"', 0.0, {}),
        ("answer", 0.0, {}),
        ('":', 0.0, {}),
        (' "', 0.0, {}),
        ("B", -0.2, {"B": -0.2, "A": -1.8}),
        ('"}', 0.0, {}),
    ]
    found = read_letter(payload('{"answer": "B"}', tokens), form_of("json_schema"), LETTERS)
    assert found is not None
    assert found.margin == pytest.approx(0.664, abs=0.001)


def test_without_other_letters_the_rest_counts_as_the_next() -> None:
    alone = [("A", -0.5108, dict[str, float]())]
    found = read_letter(payload("A", alone), form_of("text"), LETTERS)
    assert found is not None
    assert found.margin == pytest.approx(0.2, abs=0.001)


def test_a_talkative_model_is_read_by_its_first_token_if_letters_lead_there() -> None:
    leads = [("The", -0.9, {"The": -0.9, "B": -1.0, "A": -1.5})]
    assert read_letter(payload("The B", leads), form_of("text"), LETTERS) == Letter("B", None)
    trails = [("The", -0.1, {"The": -0.1, "B": -3.0})]
    assert read_letter(payload("The B", trails), form_of("text"), LETTERS) is None
    assert read_letter(payload("The B", leads), form_of("choice"), LETTERS) is None


DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"A",
        b"null",
        b"[]",
        b'{"choices": []}',
        b'{"choices": "A"}',
        b'{"choices": [{"text": "A"}]}',
        b'{"choices": [{"message": {"content": 5}}]}',
        b'{"choices": [{"message": null}]}',
        b"\xff\xfe",
        DEEP,
        b'{"choices": [{"message": {"content": "A"}, "logprobs": %s}]}' % DEEP,
        b'{"choices": [{"message": {"content": "%s"}}]}' % DEEP,
    ],
)
def test_anything_else_is_no_letter(content: bytes) -> None:
    for form in FORMS:
        assert read_letter(content, form, LETTERS) is None


@pytest.mark.parametrize(
    "logprobs", [5, "x", [], {"content": 3}, {"tokens": ["A"]}, {"content": [{}]}]
)
def test_figures_of_another_shape_are_left_aside(logprobs: object) -> None:
    content = json.dumps({"choices": [{"message": {"content": "A"}, "logprobs": logprobs}]})
    assert read_letter(content.encode(), form_of("choice"), LETTERS) == Letter("A", None)


@settings(max_examples=30)
@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_no_answer_breaks_the_reader(content: bytes) -> None:
    for form in FORMS:
        for sent in (content, payload(content.decode(errors="replace"))):
            found = read_letter(sent, form, LETTERS)
            assert found is None or found.text in LETTERS


@given(st.floats(min_value=-1e4, max_value=50), st.floats(min_value=-1e4, max_value=50))
def test_a_margin_is_a_share_whatever_figures_are_sent(mine: float, other: float) -> None:
    top = {"A": mine, "B": other}
    found = read_letter(payload("A", [("A", mine, top)]), form_of("choice"), LETTERS)
    assert found is not None
    assert found.margin is None or -1 <= found.margin <= 1
