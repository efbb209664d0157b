"""A chat server of other makers as a writer meets it: recorded shapes, and grammars that it keeps.

vLLM 0.16 takes `structured_outputs.grammar`, llama.cpp and llama-cpp-python `grammar`; OpenAI
refuses members that it does not know, and `prediction` for most models.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal

from chat_server import REFUSAL, chat_server, completion

Kind = Literal["vllm", "llama.cpp", "openai", "thinking", "plain"]
_OPENAI_MEMBERS = {"model", "messages", "stream", "max_tokens", "temperature"}
_THINKING_MEMBERS = {"model", "messages", "stream", "max_completion_tokens"}
_TOKEN = re.compile(r'"((?:\\.|[^"\\])*)"|([()|])|\s+')
_ESCAPE = re.compile(r"\\(x[0-9a-f]{2}|.)", re.DOTALL)
_PLAIN = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}


@dataclass
class WriterServer:
    """`write` makes an answer of a request and the answers to which it is bound, if it is.

    `spoil` takes the place of a whole answer that is no rehearsal. `bodies` are these requests.
    """

    kind: Kind
    url: str
    write: Callable[[dict[str, Any], Sequence[str] | None], object]
    spoil: Callable[[dict[str, Any]], tuple[int, bytes] | None] = field(default=lambda body: None)
    bodies: list[dict[str, Any]] = field(default_factory=list)


def answers_of(grammar: str) -> list[str]:
    """All answers of a grammar of one rule, with literals and one group of alternatives."""
    assert grammar.startswith("root ::= ")
    parts: list[list[str]] = [[""]]
    is_open = False
    for literal, sign in _tokens(grammar.removeprefix("root ::= ")):
        if sign == "(":
            is_open = True
            parts.append([])
        elif sign == ")":
            is_open = False
            parts.append([""])
        elif sign == "|" and not is_open:
            parts = [[*parts[0]], *parts[1:]]
            parts[-1].append("")
        elif literal is not None and is_open:
            parts[-1].append(literal)
        elif literal is not None:
            parts[-1][-1] += literal
    return ["".join(way) for way in product(*parts)]


def _tokens(text: str) -> Iterator[tuple[str | None, str]]:
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        assert found is not None, text[position:]
        position = found.end()
        if found[1] is not None:
            yield _ESCAPE.sub(_unescaped, found[1]), ""
        elif found[2] is not None:
            yield None, found[2]


def _unescaped(found: re.Match[str]) -> str:
    code = found[1]
    return chr(int(code[1:], 16)) if len(code) == 3 else _PLAIN[code]


def grammar_in(kind: Kind, body: dict[str, Any]) -> str | None:
    """The grammar that a server of this kind keeps."""
    if kind == "vllm":
        return body.get("structured_outputs", {}).get("grammar")
    return body.get("grammar") if kind == "llama.cpp" else None


def _refuses(kind: Kind, body: dict[str, Any]) -> bool:
    if kind == "openai":
        return not set(body) <= _OPENAI_MEMBERS
    return kind == "thinking" and not set(body) <= _THINKING_MEMBERS


@contextmanager
def writer_server(
    kind: Kind, write: Callable[[dict[str, Any], Sequence[str] | None], object]
) -> Iterator[WriterServer]:
    def answer(body: dict[str, Any], _key: str | None) -> tuple[int, bytes]:
        if _refuses(kind, body):
            return 400, REFUSAL
        grammar = grammar_in(kind, body)
        ways = None if grammar is None else answers_of(grammar)
        if "<code>" not in body["messages"][-1]["content"]:
            return 200, json.dumps(completion(body, ways[0] if ways else "hello")).encode()
        writer.bodies.append(body)
        spoilt = writer.spoil(body)
        if spoilt is not None:
            return spoilt
        return 200, json.dumps(completion(body, writer.write(body, ways))).encode()

    with chat_server(answer) as url:
        writer = WriterServer(kind, url, write)
        yield writer
