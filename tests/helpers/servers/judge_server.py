"""A chat server of other makers as a judge meets it: recorded shapes of requests and answers.

What each kind takes, ignores and refuses was read in the documentation and source of vLLM 0.16
(`structured_outputs`), llama.cpp's server (`grammar`), llama-cpp-python 0.3.36 (`json_object` with
a schema), OpenAI (400 for members that it does not know) and Ollama 0.12 (`json_schema`).
"""

from __future__ import annotations

import json
import math
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from chat_server import REFUSAL, chat_server, completion

Kind = Literal["vllm", "llama.cpp", "llama-cpp-python", "openai", "ollama", "plain"]
# The options of a question by their letters, each as its text.
Options = dict[str, str]
Decide = Callable[[Options], str]
OPTION = re.compile(r'<option letter="(\w)">\n(.*?)</option>', re.DOTALL)
# Members of a request that everybody takes.
_KNOWN = {"model", "messages", "stream", "max_tokens", "temperature", "logprobs", "top_logprobs"}
_KNOWN_TO_OPENAI = {*_KNOWN, "response_format", "max_completion_tokens"}
_WAIT_S = 30.0


@dataclass
class JudgeServer:
    """`decide` names a letter; `sureness` is its probability, the others share the rest.

    `spoil` takes the place of what is sent. Answers wait while `gate` is cleared. `bodies` are the
    requests, `keys` their authorizations.
    """

    kind: Kind
    url: str
    decide: Decide = field(default=lambda options: next(iter(options)))
    sureness: float = 0.99
    has_logprobs: bool = True
    spoil: Callable[[bytes], bytes] | None = None
    status: int = 200
    gate: threading.Event = field(default_factory=threading.Event)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)

    @property
    def questions(self) -> list[dict[str, Any]]:
        """The requests that were no rehearsals."""
        return [body for body in self.bodies if options_of(body)]

    def names(self, needle: str) -> None:
        """Have it name the option with this text in it, or the last one, which is none."""
        self.decide = lambda options: next(
            (letter for letter, text in options.items() if needle in text), list(options)[-1]
        )


def options_of(body: dict[str, Any]) -> Options:
    return dict(OPTION.findall(body["messages"][-1]["content"]))


def bounds_of(kind: Kind, body: dict[str, Any]) -> tuple[list[str] | None, bool]:
    """The letters to which a server of this kind is bound by a request, and whether as JSON."""
    wanted = body.get("response_format") or {}
    if kind == "vllm" and "structured_outputs" in body:
        return body["structured_outputs"]["choice"], False
    if kind in ("llama.cpp", "llama-cpp-python") and "grammar" in body:
        return re.findall(r'"(\w)"', body["grammar"]), False
    if wanted.get("type") == "json_schema" and kind not in ("plain", "llama-cpp-python"):
        return wanted["json_schema"]["schema"]["properties"]["answer"]["enum"], True
    if wanted.get("type") == "json_object" and kind in ("llama.cpp", "llama-cpp-python"):
        return wanted["schema"]["properties"]["answer"]["enum"], True
    return None, False


def refusal_of(kind: Kind, body: dict[str, Any]) -> int | None:
    """The status of a request that a server of this kind does not take."""
    if kind == "openai" and not set(body) <= _KNOWN_TO_OPENAI:
        return 400
    wanted = body.get("response_format") or {}
    if kind == "openai" and wanted.get("type") == "json_object" and "schema" in wanted:
        return 400
    if kind == "llama-cpp-python" and wanted.get("type") == "json_schema":
        return 422
    return None


def answer_of(server: JudgeServer, body: dict[str, Any]) -> dict[str, Any]:
    letters, is_json = bounds_of(server.kind, body)
    options = options_of(body)
    letter = server.decide(options) if options else (letters or ["hello"])[0]
    content = json.dumps({"answer": letter}) if is_json else letter
    logprobs = None
    if body.get("logprobs") and server.has_logprobs:
        tokens = ['{"', "answer", '":', ' "', letter, '"}'] if is_json else [letter]
        logprobs = {"content": [_weighed(server, body, token, options) for token in tokens]}
    return completion(body, content, logprobs=logprobs)


def _weighed(
    server: JudgeServer, body: dict[str, Any], token: str, options: Options
) -> dict[str, Any]:
    others = [one for one in options if one != token and token in options]
    rest = (1 - server.sureness) / max(len(others), 1)
    shares = {token: server.sureness if others else 1.0, **dict.fromkeys(others, rest)}
    top = [{"token": one, "logprob": math.log(share)} for one, share in shares.items()]
    is_wanted = bool(body.get("top_logprobs"))
    return {
        "token": token,
        "logprob": math.log(shares[token]),
        "bytes": list(token.encode()),
        "top_logprobs": top if is_wanted else [],
    }


@contextmanager
def judge_server(kind: Kind, *, model: str = "first-model") -> Iterator[JudgeServer]:
    def answer(body: dict[str, Any], key: str | None) -> tuple[int, bytes]:
        judge.bodies.append(body)
        judge.keys.append(key)
        judge.gate.wait(_WAIT_S)
        refusal = refusal_of(judge.kind, body)
        if refusal is not None:
            return refusal, REFUSAL
        content = json.dumps(answer_of(judge, body)).encode()
        is_question = bool(options_of(body))
        if judge.spoil is not None and is_question:
            content = judge.spoil(content)
        return judge.status if is_question else 200, content

    with chat_server(answer, model=model) as url:
        judge = JudgeServer(kind, url)
        judge.gate.set()
        try:
            yield judge
        finally:
            judge.gate.set()
