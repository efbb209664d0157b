"""How servers are bound to answer with one letter, each in words of its own.

Servers ignore members of a request that they do not know, or refuse the request for them. So a
form is tried before it is used: see `Judge`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from apply_service.apply.judge.question import Asked

FormName = Literal["choice", "grammar", "json_schema", "json_object", "text"]

_KEY = "answer"
# A letter and the end of the text; `{"answer": "A"}` with as much white space as a grammar allows.
_MAX_LETTER_TOKENS = 4
_MAX_JSON_TOKENS = 32
# Letters that a server is asked to weigh; the most that OpenAI and vLLM allow is 20.
_NUM_LOGPROBS = 10
# Models that think aloud do so before they are bound; vLLM and llama.cpp leave it out on request.
_NO_THINKING = {"chat_template_kwargs": {"enable_thinking": False}}
# A letter alone, perhaps in marks: `A`, `(A)`, `**A.**`. A sentence is no letter.
_BARE_LETTER = re.compile(r"\W*([A-Z])\W*")


def _schema(letters: tuple[str, ...]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {_KEY: {"type": "string", "enum": list(letters)}},
        "required": [_KEY],
        "additionalProperties": False,
    }


def _choice(letters: tuple[str, ...]) -> dict[str, Any]:
    return {"structured_outputs": {"choice": list(letters)}, **_NO_THINKING}


def _grammar(letters: tuple[str, ...]) -> dict[str, Any]:
    return {"grammar": "root ::= " + " | ".join(f'"{one}"' for one in letters), **_NO_THINKING}


def _json_schema(letters: tuple[str, ...]) -> dict[str, Any]:
    named = {"name": _KEY, "strict": True, "schema": _schema(letters)}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


def _json_object(letters: tuple[str, ...]) -> dict[str, Any]:
    return {"response_format": {"type": "json_object", "schema": _schema(letters)}}


def _no_bounds(_letters: tuple[str, ...]) -> dict[str, Any]:
    return {}


def _read_letter(content: str) -> str | None:
    return content.strip()


def _read_json(content: str) -> str | None:
    try:
        value = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError):
        return None
    return value.get(_KEY) if isinstance(value, dict) and set(value) == {_KEY} else None


def _read_text(content: str) -> str | None:
    found = _BARE_LETTER.fullmatch(content)
    return None if found is None else found[1]


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """Members of a request that bind its answer, and the way the answer is read."""

    name: FormName
    bounds: Callable[[tuple[str, ...]], dict[str, Any]]
    read: Callable[[str], str | None]
    max_tokens: int


# vLLM; llama.cpp; OpenAI, Ollama, SGLang and others; llama-cpp-python; whoever can chat.
FORMS = (
    AnswerForm("choice", _choice, _read_letter, _MAX_LETTER_TOKENS),
    AnswerForm("grammar", _grammar, _read_letter, _MAX_LETTER_TOKENS),
    AnswerForm("json_schema", _json_schema, _read_json, _MAX_JSON_TOKENS),
    AnswerForm("json_object", _json_object, _read_json, _MAX_JSON_TOKENS),
    AnswerForm("text", _no_bounds, _read_text, _MAX_LETTER_TOKENS),
)

_GREEDY = {"temperature": 0}


def _weighed(max_tokens: int) -> dict[str, Any]:
    return {**_plain(max_tokens), "logprobs": True, "top_logprobs": _NUM_LOGPROBS}


def _weighed_alone(max_tokens: int) -> dict[str, Any]:
    return {**_plain(max_tokens), "logprobs": True}


def _plain(max_tokens: int) -> dict[str, Any]:
    return {"max_tokens": max_tokens, **_GREEDY}


def _bare(max_tokens: int) -> dict[str, Any]:
    # Models that think refuse a temperature and count their thoughts as tokens of the answer.
    return {"max_completion_tokens": max_tokens + 2048}


# From the most that can be asked for to the least: the first one that a server takes is kept.
MANNERS = (_weighed, _weighed_alone, _plain, _bare)


@dataclass(frozen=True, slots=True)
class Dialect:
    """A form and a manner of asking that a server understands."""

    form: AnswerForm
    manner: Callable[[int], Mapping[str, Any]]

    @property
    def name(self) -> str:
        """The name of the form."""
        return self.form.name

    def body(self, asked: Asked, *, model: str) -> dict[str, Any]:
        """The body of a request that asks."""
        return {
            "model": model,
            "messages": asked.messages,
            "stream": False,
            **self.manner(self.form.max_tokens),
            **self.form.bounds(asked.letters),
        }
