"""Generates invalid requests of many kinds from a seed, route by route.

Half of them are valid bodies with a few changes, so that they come far; most others are not even
JSON.
"""

from __future__ import annotations

import copy
import gzip
import http.client
import json
import random
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

from apply_service.http.compat.compacted_code import APPLY_CONTEXT_HEADER
from apply_service.http.routes.apply import apply
from apply_service.http.routes.batches import batches
from apply_service.http.routes.chat import chat_completions
from apply_service.http.routes.code_apply import code_apply
from apply_service.http.routes.hashlines import hashlines
from apply_service.http.routes.messages import messages
from apply_service.http.routes.responses import responses

# No request of these takes longer, whatever deadline it asks for.
HANG_S = 60.0

BATCH_PATHS = sorted(batches.paths)
POST_PATHS = sorted(
    {
        *apply.paths,
        *chat_completions.paths,
        *responses.paths,
        *messages.paths,
        *code_apply.paths,
        *hashlines.paths,
        *BATCH_PATHS,
    }
)
GET_PATHS = [
    *("/v1/models", "/v1/models/{name}", "/v1/tools/edit_file", "/health/live", "/health/ready"),
    *("/metrics", "/schema", "/schema/openapi.json", "/nothing"),
]
ROUTES = [*POST_PATHS, *GET_PATHS]

_FILE = "import os\n\n\ndef name(path):\n    return path\n\n\ndef size(path):\n    return 0\n"
_UPDATE = (
    "# ... existing code ...\ndef name(path):\n    return path.lower()\n# ... existing code ...\n"
)
_EDIT: dict[str, Any] = {"original": _FILE, "update": _UPDATE, "path": "names.py"}
_MESSAGE = f"<instruction>lower</instruction>\n<code>{_FILE}</code>\n<update>{_UPDATE}</update>"

_EDITS: list[dict[str, Any]] = [
    _EDIT,
    {**_EDIT, "stream": True, "use_model": "always", "sampling": {"max_tokens": 20}},
    {**_EDIT, "use_model": "never", "response": "edits", "include": ["decisions"]},
    {
        **_EDIT,
        "instruction": "lower",
        "prediction": _FILE,
        "scope": "file",
        "k": 8,
        "checks": "off",
    },
    {**_EDIT, "update": [{"old_string": "return 0", "new_string": "return 1"}]},
    {**_EDIT, "update": {"start_line": 5, "end_line": 5, "new_string": "    return 1"}},
    {**_EDIT, "update": [{"op": "append", "lines": ["x = 1"]}], "format": "hashline"},
    {**_EDIT, "original": {"base64": "YSA9IDEK"}, "update": "a = 2\n", "deadline_s": 5.0},
]
_PATCH = """\
*** Begin Patch
*** Update File: names.py
@@ def size(path):
-    return 0
+    return 1
*** Add File: pkg/new.py
+x = 1
*** Delete File: old.py
*** Update File: moved.py
*** Move to: there.py
@@
-a = 1
+a = 2
*** End Patch
"""
_MOVED = {"path": "moved.py", "original": "a = 1\n"}
_SEVERAL: list[dict[str, Any]] = [
    {"files": [_EDIT, {**_MOVED, "update": "a = 2\n"}], "atomic": True, "use_model": "never"},
    {"files": [{**_EDIT, "format": "lazy"}], "stream": False, "on_doubt": "best", "k": 8},
    {
        "files": [{"path": "names.py", "original": _FILE}, _MOVED],
        "update": _PATCH,
        "format": "apply_patch",
        "instruction": "lower",
        "deadline_s": 5.0,
    },
    {"files": [_MOVED], "update": "--- a/moved.py\n+++ b/moved.py\n@@ -1 +1 @@\n-a = 1\n+a = 2\n"},
]
_CHATS: list[dict[str, Any]] = [
    {"model": None, "messages": [{"role": "user", "content": _MESSAGE}], "stream": False},
    {
        "messages": [
            {"role": "system", "content": "merge"},
            {"role": "user", "content": [{"type": "text", "text": _MESSAGE}]},
        ],
        "prediction": {"type": "content", "content": _FILE},
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.5,
        "top_p": 0.9,
        "seed": 7,
        "max_tokens": 50,
    },
    {
        "messages": [{"role": "user", "content": _MESSAGE}],
        "stop": ["\n\n\n"],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"a": {"b": {}}}}}],
    },
    {"messages": [{"role": "user", "content": "What is a merge?"}], "logprobs": True},
]
_RESPONSES: list[dict[str, Any]] = [
    {"model": None, "input": _MESSAGE, "stream": False, "metadata": {"a": "b"}},
    {
        "input": [
            {"role": "developer", "content": "merge"},
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": _MESSAGE}],
            },
        ],
        "instructions": "Be exact.",
        "stream": True,
        "temperature": 0.5,
        "top_p": 0.9,
        "max_output_tokens": 50,
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "reasoning": {"effort": "none"},
    },
    {"input": "What is a merge?", "include": ["message.output_text.logprobs"], "tools": []},
    {"input": [{"role": "user", "content": _MESSAGE}], "previous_response_id": "resp_1"},
]
_MESSAGES: list[dict[str, Any]] = [
    {"model": None, "max_tokens": 50, "messages": [{"role": "user", "content": _MESSAGE}]},
    {
        "system": [{"type": "text", "text": "merge"}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": _MESSAGE}]}],
        "stream": True,
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 20,
        "stop_sequences": ["\n\n\n"],
        "thinking": {"type": "disabled"},
        "tool_choice": {"type": "auto"},
    },
    {"messages": [{"role": "user", "content": "What is a merge?"}], "tools": [{"name": "f"}]},
]
_FIELDS: list[dict[str, Any]] = [
    {"initial_code": _FILE, "edit_snippet": _UPDATE, "stream": False},
    {"initialCode": _FILE, "editSnippet": _UPDATE, "instructions": "lower", "stream": True},
]

_PIECES = [
    *("# ... existing code ...", "// ...", "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE", "@@"),
    *("*** Begin Patch", "*** Update File: a.py", "*** End Patch", "@@ -1,2 +1,2 @@", "```", "+a"),
    *("</update>", "<code>", "</code><code>", "<update>", "⟪MORPH_DEFINITIONS_BEGIN_1⟫"),
    *("⟪M0:12:line⟫", '⟪M0:1:line⟫="\\ud800"', "\x00", "\ufeff", "\u2028", "\r", "\t", "\x1b[2J"),
    *("\ud800", "\udfff\ud800", "\U0001f600", "e\u0301", "\u202e", "%s%n", "../../etc/passwd"),
    *("{{", "{% for %}", "${x}", "<|im_end|>", "<|endoftext|>", "\n" * 500, "(" * 300, "x" * 5000),
]
_ODD_VALUES: list[Any] = [
    *(None, True, False, 0, -1, 1, 256, 257, 1 << 31, 1 << 63, 1 << 64, -(1 << 63), 10**400),
    *(0.0, -0.0, 1e-320, 1e308, float("nan"), float("inf"), float("-inf"), 0.1, "", " ", "null"),
    *([], {}, [[]], [None], {"": ""}, {"base64": "="}, {"base64": "////"}, {"base64": "AAAA"}),
    *("auto", "always", "never", "file", "region", "merge", "none", "batch", "on", "off", "edits"),
    *("python", "no-such-language", "no-such-model", "data:,", ["decisions", "decisions"]),
]
_CONTENT_TYPES = [
    *("application/json", "application/json; charset=utf-16", "text/plain", "application/xml", ""),
    *("multipart/form-data", "multipart/form-data; boundary=", "application/x-www-form-urlencoded"),
    *("application/x-ndjson", "application/msgpack", "application/json;" * 200, "\xff/\xfe", ";=;"),
]
_HEADERS: list[tuple[str, list[str]]] = [
    ("Origin", ["http://[", "null", "http://evil.example.com", "://", "http://127.0.0.1:99999999"]),
    ("X-Request-Id", ["", "a b", "x" * 500, "\xe9", "ok-1", '"; drop', "%0d%0aX: y"]),
    (
        "Authorization",
        ["Bearer", "Bearer  ", "Basic ====", "Bearer \xff", "bearer apply_00000000_x"],
    ),
    ("X-Api-Key", ["", "\xff", "x" * 5000]),
    ("Accept", ["*", ";q=", "a/b;q=nan", "text/html", ",,,", "\xff", "*/*;q=1e999"]),
    ("Content-Encoding", ["gzip", "br", "identity", "x"]),
    ("Accept-Encoding", ["gzip;q=x", "br", "*;q=0"]),
    ("Cookie", ["a", "a=b; a=b; ;;=", "\xff=\xff", "=" * 1000]),
    ("Traceparent", ["00-0-0-0", "00-" + "0" * 32 + "-" + "0" * 16 + "-00", "\xff"]),
    ("X-Forwarded-For", ["", "1.2.3.4, [::", "\xff", "unknown"]),
    ("Forwarded", ["for=[", "\xff"]),
    ("Expect", ["100-continue"]),
    ("Upgrade", ["websocket", "h2c"]),
    ("Connection", ["upgrade", "close, upgrade"]),
    ("Range", ["bytes=0-", "bytes=9-1"]),
    ("If-None-Match", ["*", '"']),
    (APPLY_CONTEXT_HEADER, ["extralong", "", "other", "\xff"]),
]


@dataclass(frozen=True, slots=True)
class FuzzedRequest:
    """One request; `kind` names its fault."""

    kind: str
    method: str
    target: str
    headers: dict[str, str]
    content: bytes

    @property
    def is_batch(self) -> bool:
        """True if the answer has lines."""
        return self.method == "POST" and urlsplit(self.target).path in BATCH_PATHS


def fuzzed_requests(route: str, *, count: int, seed: int) -> Iterator[FuzzedRequest]:
    """The fuzzed requests of a seed; equal seeds give equal requests, each made by itself."""
    for number in range(count):
        generator = random.Random(f"{seed} {route} {number}")
        yield _Fuzzer(route, generator).make()


def _seed_bodies(route: str) -> list[dict[str, Any]]:
    if route in BATCH_PATHS:
        return [{"id": str(number), **body, "stream": False} for number, body in enumerate(_EDITS)]
    if route in apply.paths:
        return [*_EDITS, *_SEVERAL]
    if route in code_apply.paths:
        return _FIELDS
    if route in hashlines.paths:
        return [{"original": _FILE}]
    if route in responses.paths:
        return _RESPONSES
    if route in messages.paths:
        return _MESSAGES
    return _CHATS


class _Fuzzer:
    """Makes one request."""

    def __init__(self, route: str, generator: random.Random) -> None:
        self._route = route
        self._random = generator

    def make(self) -> FuzzedRequest:
        kind, content = self._content()
        headers = {"Content-Type": "application/json"}
        if self._random.random() < 0.2:
            headers["Content-Type"] = self._random.choice(_CONTENT_TYPES)
        if kind in ("gzip", "deflate") and self._random.random() < 0.7:
            headers["Content-Encoding"] = kind
        for name, values in _HEADERS:
            if self._random.random() < 0.02:
                headers[name] = self._random.choice(values)
        method = "POST" if self._route in POST_PATHS else "GET"
        if self._random.random() < 0.03:
            methods = ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "BREW"]
            method = self._random.choice(methods)
        return FuzzedRequest(kind, method, self._target(), headers, content)

    def _target(self) -> str:
        pieces = self._random.choices([*_PIECES, "a", "/", "..", "//"], k=2)
        name = quote(_printable("".join(pieces)))
        path = self._route.replace("{name}", name if self._random.random() < 0.8 else "%ff%00%2e")
        if self._random.random() < 0.03:
            path += self._random.choice(
                ["/", "//", "/..", "/../..", "/%2e%2e/", ";a", "%00", "%0a"]
            )
        if self._random.random() < (0.8 if self._route in GET_PATHS else 0.05):
            names = ["model", "form", "x", "%ff", "", "model[]"]
            values = [
                *map(quote, map(_printable, _PIECES)),
                "ready",
                "openai",
                "mcp",
                "%ff",
                "",
                "1",
            ]
            pairs = [
                f"{self._random.choice(names)}={self._random.choice(values)}"
                for _ in range(self._random.randint(1, 3))
            ]
            path += "?" + self._random.choice(["&", "&&", ";"]).join(pairs)
        return path

    def _content(self) -> tuple[str, bytes]:
        if self._route in GET_PATHS and self._random.random() < 0.7:
            return "no body", b""
        kind, content = self._body()
        if self._route in BATCH_PATHS:
            lines = [content, *(self._body()[1] for _ in range(self._random.randint(0, 4)))]
            self._random.shuffle(lines)
            content = self._random.choice([b"\n", b"\r\n", b"\n\n", b"\n \n"]).join(lines)
        return kind, content

    def _body(self) -> tuple[str, bytes]:
        kinds: dict[str, tuple[float, Callable[[dict[str, Any]], bytes]]] = {
            "values": (10, self._with_odd_values),
            "texts": (6, self._with_odd_texts),
            "members": (4, self._with_odd_members),
            "twice": (2, self._with_members_twice),
            "bytes": (5, self._with_odd_bytes),
            "nested": (3, self._nested),
            "encoded": (2, self._encoded),
            "gzip": (1, lambda body: gzip.compress(_json(body))),
            "deflate": (0.5, lambda body: zlib.compress(_json(body))),
            "noise": (2, lambda _: self._random.randbytes(self._random.choice([1, 9, 200, 9000]))),
            "blank": (
                0.5,
                lambda _: self._random.choice([b"", b" ", b"\n\n", b"\0", b"null", b'"']),
            ),
            "large": (0.1, lambda body: _json(body) + b" " * 5_000_000),
            "valid": (2, _json),
        }
        weights = [weight for weight, _ in kinds.values()]
        (kind,) = self._random.choices(list(kinds), weights)
        body = self._random.choice(_seed_bodies(self._route))
        return kind, kinds[kind][1](json.loads(json.dumps(body)))

    def _odd_value(self) -> Any:
        return copy.deepcopy(self._random.choice(_ODD_VALUES))

    def _with_odd_values(self, body: dict[str, Any]) -> bytes:
        for _ in range(self._random.randint(1, 3)):
            holder, key = self._random.choice(list(_places(body)))
            holder[key] = self._odd_value()
        return _json(body)

    def _with_odd_texts(self, body: dict[str, Any]) -> bytes:
        texts = [place for place in _places(body) if isinstance(place[0][place[1]], str)]
        for holder, key in self._random.choices(texts, k=3):
            text = str(holder[key])
            start, end = sorted(self._random.choices(range(len(text) + 1), k=2))
            cut = text[end:] if self._random.random() < 0.3 else text[start:]
            pieces = self._random.choices(_PIECES, k=self._random.randint(1, 4))
            glue = self._random.choice(["\n", "", "\r\n", " "])
            holder[key] = text[:start] + glue + glue.join(pieces) + glue + cut
        return _json(body)

    def _with_odd_members(self, body: dict[str, Any]) -> bytes:
        for _ in range(self._random.randint(1, 3)):
            holders = [body, *(h[k] for h, k in _places(body) if isinstance(h[k], dict))]
            holder = self._random.choice(holders)
            if holder and self._random.random() < 0.5:
                del holder[self._random.choice(list(holder))]
            else:
                name = self._random.choice([*_PIECES[:12], "id", "x", "", "deadline_s", "model"])
                holder[name] = self._odd_value()
        return _json(body)

    def _with_members_twice(self, body: dict[str, Any]) -> bytes:
        name = self._random.choice(list(body))
        other = _json(self._odd_value())
        return b"{" + _json(name) + b":" + other + b"," + _json(body)[1:]

    def _with_odd_bytes(self, body: dict[str, Any]) -> bytes:
        content = bytearray(_json(body))
        for _ in range(self._random.randint(1, 6)):
            at = self._random.randrange(len(content) + 1)
            way = self._random.randrange(4)
            if way == 0 and at < len(content):
                content[at] = self._random.randrange(256)
            elif way == 1:
                content[at:at] = self._random.randbytes(self._random.randint(1, 8))
            elif way == 2:
                del content[at : at + self._random.randint(1, 40)]
            else:
                content[at:at] = self._random.choice(
                    [b"\xff", b"\xed\xa0\x80", b"\\u", b'"', b"\\"]
                )
        return bytes(content)

    def _nested(self, body: dict[str, Any]) -> bytes:
        depth = self._random.choice([50, 99, 101, 1000, 30_000])
        opening, closing = self._random.choice([(b"[", b"]"), (b'{"a":', b"}")])
        inner = opening * depth + b"1" + closing * self._random.choice([depth, depth, 0])
        if self._random.random() < 0.2:
            return inner
        name = self._random.choice([*body, "tools", "x"])
        return b"{" + _json(name) + b":" + inner + b"," + _json(body)[1:]

    def _encoded(self, body: dict[str, Any]) -> bytes:
        text = json.dumps(body, ensure_ascii=False)
        coding = self._random.choice(["utf-16", "utf-32", "utf-8-sig", "utf-7", "cp037"])
        return text.encode(coding, "replace")


def _json(value: Any) -> bytes:
    """JSON in ASCII; lone surrogates are escapes, NaN stands as it is."""
    return json.dumps(value).encode()


def _printable(text: str) -> str:
    return text[:200].encode("utf-8", "replace").decode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """The place of every inner member and item, as its holder and its key there."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


@dataclass
class Tally:
    """Counts of the answers to the requests of one route."""

    statuses: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def send_fuzzed(url: str, request: FuzzedRequest, tally: Tally) -> None:
    """Send a request on a connection of its own, and note its status and the answer's fault."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=HANG_S)
    try:
        headers = {name: value.encode("latin-1") for name, value in request.headers.items()}
        connection.request(request.method, request.target, request.content, headers)
        response = connection.getresponse()
        content = response.read()
    except (OSError, http.client.HTTPException) as error:
        tally.statuses["no answer"] += 1
        tally.faults.append(f"{error!r} to {request}")
        return
    finally:
        connection.close()
    tally.statuses[str(response.status)] += 1
    fault = _fault_of(request, response.status, content)
    if fault is not None:
        tally.faults.append(f"{fault} to {request}")


def _fault_of(request: FuzzedRequest, status: int, content: bytes) -> str | None:
    """The fault of an answer, or None."""
    if status >= 500 and status != 504:
        return f"{status} {content[:300]!r}"
    if b'"code":"internal"' in content or b"server_error" in content:
        return f"an error of the server's: {content[-300:]!r}"
    if request.is_batch and status == 200:
        lines = enumerate(request.content.split(b"\n"), start=1)
        expected = [number for number, line in lines if line.strip()]
        answered = sorted(json.loads(line)["line"] for line in content.splitlines())
        if answered != expected:
            return f"lines {expected} were sent, {answered} answered"
    return None
