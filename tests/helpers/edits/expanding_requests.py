"""Generates small requests that stand for large texts: by reference, repetition or indentation.

Each body has at most 64 kB. What it stands for may have gigabytes.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

from fuzzed_requests import FuzzedRequest

from apply_service.http.compat.compacted_code import APPLY_CONTEXT_HEADER

MAX_BYTES = 64_000

_HEADERS = {"Content-Type": "application/json"}
_EXPLANATION = (
    "<instruction>do it\n\nLARGE-FILE ANCHOR PROTOCOL:\nsee ⟪MORPH_CODE_BEGIN_7⟫</instruction>"
)


def expanding_requests(*, count: int, seed: int) -> Iterator[FuzzedRequest]:
    """The requests of a seed, each kind in turn."""
    for number in range(count):
        generator = random.Random(f"{seed} {number}")
        kind, make = list(_KINDS.items())[number % len(_KINDS)]
        target, body, headers = make(generator)
        content = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
        assert len(content) <= MAX_BYTES, (kind, len(content))
        yield FuzzedRequest(kind, "POST", target, _HEADERS | headers, content)


_Made = tuple[str, Any, dict[str, str]]


def _compacted(generator: random.Random) -> _Made:
    """Few fragments, referenced often."""
    num_fragments = generator.randint(1, 4)
    length = generator.randint(24, 40_000 // num_fragments)
    table = [
        f"⟪M7:{number}:line⟫={json.dumps(generator.choice('xé'[:1]) * length)}"
        for number in range(num_fragments)
    ]
    room = MAX_BYTES - sum(map(len, table)) - 2_000
    reference = "⟪M7:0:line⟫"
    used = "".join(f"⟪M7:{number}:line⟫" for number in range(num_fragments))
    skeleton = used + reference * (room // (len(reference.encode()) + 1) - num_fragments)
    code = "\n".join(
        [
            "⟪MORPH_DEFINITIONS_BEGIN_7⟫",
            *table,
            "⟪MORPH_DEFINITIONS_END_7⟫",
            "⟪MORPH_CODE_BEGIN_7⟫",
            skeleton,
        ]
    )
    content = f"{_EXPLANATION}\n<code>{code}</code>\n<update>a new line</update>"
    target = generator.choice(["/v1/chat/completions", "/v1/messages", "/v1/responses"])
    messages = [{"role": "user", "content": content}]
    body = {"input": messages} if target == "/v1/responses" else {"messages": messages}
    if target == "/v1/messages":
        body["max_tokens"] = 100
    return target, body, {APPLY_CONTEXT_HEADER: "extralong"}


def _apply(original: str, update: Any, **options: Any) -> _Made:
    return "/v1/apply", {"original": original, "update": update, **options}, {}


def _everywhere(generator: random.Random) -> _Made:
    """A short text that stands everywhere becomes a long one, or doubles again and again."""
    if generator.random() < 0.5:
        edit = {"old_string": "a", "new_string": "b" * 30_000, "replace_all": True}
        return _apply("a" * generator.randint(10, 30_000), [edit])
    edit = {"old_string": "a", "new_string": "aa", "replace_all": True}
    return _apply("a\n" * generator.randint(1, 100), [edit] * generator.randint(20, 900))


def _everywhere_by_lines(generator: random.Random) -> _Made:
    """The same where the old lines stand with another indentation."""
    new = "\n".join(["new"] * generator.randint(10, 4_000))
    edit = {"old_string": "a\nb\n", "new_string": f"{new}\na\nb\n", "replace_all": True}
    return _apply(" a\n b\n" * generator.randint(2, 60), [edit] * generator.randint(1, 3))


def _copies(generator: random.Random) -> _Made:
    """JSON Patch: a document is copied into itself."""
    copies = [
        {"op": "copy", "from": "", "path": f"/c{n}"} for n in range(generator.randint(10, 900))
    ]
    return _apply('{"a": "' + "x" * generator.randint(1, 20_000) + '"}\n', copies, path="a.json")


def _wide_unit(generator: random.Random) -> _Made:
    """JSON Patch: a value with many lines goes into a file with wide indentation."""
    unit = " " * generator.randint(1_000, 25_000)
    value: Any = [1] * generator.randint(100, 5_000)
    for _ in range(generator.randint(0, 200)):
        value = [value]
    operation = {"op": "add", "path": "/b", "value": value}
    return _apply("{\n" + unit + '"a": [\n1\n]\n}\n', [operation], path="a.json")


def _wide_place(generator: random.Random) -> _Made:
    """Many lines are written where the file is indented widely."""
    indent = " " * generator.randint(1_000, 10_000)
    body = [f"x{n} = {n}" for n in range(generator.randint(100, 1_500))]
    original = f"def f():\n{indent}y = 1\n{indent}return y\n"
    update = ["# ... existing code ...", "def f():", "  y = 1", *(f"  {one}" for one in body)]
    update += ["  return y"]
    if generator.random() < 0.5:
        update = ["<<<<<<< SEARCH", " y = 1", "=======", *(f" {one}" for one in body)]
        update += [">>>>>>> REPLACE"]
    return _apply(original, "\n".join(update), path="a.py")


def _steps(generator: random.Random) -> _Made:
    """Each step of indentation stands for a wide one."""
    unit = "\t" * generator.randint(100, 2_000)
    depth = generator.randint(5, 150)
    original = "if a:\n" + unit + "if b:\n" + unit * 2 + "c()\n"
    lines = [" " * number + f"if x{number}:" for number in range(2, depth)]
    update = ["if a:", " if b:", *lines, " " * depth + "c()"]
    return _apply(original, "\n".join(["# ... existing code ...", *update]), path="a.py")


def _inline(generator: random.Random) -> _Made:
    """Many lines that each abbreviate the same long one."""
    long = "f(" + ", ".join(f"k{n}=1" for n in range(generator.randint(10, 250))) + ")"
    lines = ["f(k0=2, /* ... existing ... */)"] * generator.randint(10, 1_200)
    return _apply(f"a()\n{long}\nb()\n", "\n".join(["a()", *lines, "b()"]), path="a.js")


def _numbers(generator: random.Random) -> _Made:
    """Hunks and edits whose numbers name more than there is."""
    number = generator.choice([10**6, 999_999_999, 10**18, 10**30])
    if generator.random() < 0.5:
        hunks = [f"@@ -{number},{number} +1,{number} @@\n-a\n+b\n"] * generator.randint(1, 500)
        return _apply("a\n" * 50, "--- a/x\n+++ b/x\n" + "".join(hunks))
    edit = {"start_line": 1, "end_line": number, "new_string": "b"}
    return _apply("a\n" * 50, [edit] * generator.randint(1, 500))


def _long_numbers(generator: random.Random) -> _Made:
    """JSON with numbers and nesting that a reader may stumble over."""
    value = generator.choice(["1" * 5_000, "1e999999", "-0.0", "[" * 900 + "]" * 900])
    patch = f'[{{"op": "add", "path": "/a", "value": {value}}}]'
    original = json.dumps("{\n  " + '"b": 1\n}\n')
    return (
        "/v1/apply",
        f'{{"original": {original}, "update": {patch}, "path": "a.json"}}'.encode(),
        {},
    )


def _files(generator: random.Random) -> _Made:
    """Many files with one common update, or with one long prediction."""
    num_files = generator.randint(2, 200)
    files = [{"path": f"f{n}.py", "original": "a = 1\nb = 2\n"} for n in range(num_files)]
    hunk = "@@ -1,2 +1,2 @@\n-a = 1\n+a = 2\n b = 2\n"
    update = "".join(f"--- a/f{n}.py\n+++ b/f{n}.py\n{hunk}" for n in range(num_files))
    body: dict[str, Any] = {"files": files, "update": update}
    body["instruction"] = "x" * max(0, MAX_BYTES - len(json.dumps(body)) - 100)
    return "/v1/apply", body, {}


def _batch(generator: random.Random) -> _Made:
    """Lines that each stand for a large text."""
    edit = {"old_string": "a", "new_string": "b" * 3_000, "replace_all": True}
    line = {"original": "a" * 3_000, "update": [edit]}
    lines = [json.dumps({"id": str(n), **line}) for n in range(generator.randint(1, 9))]
    return "/v1/batches", "\n".join(lines).encode(), {}


def _names(generator: random.Random) -> _Made:
    """A name for each of very many lines."""
    return "/v1/hashlines", {"original": "\n" * generator.randint(1_000, 30_000)}, {}


def _answers(generator: random.Random) -> _Made:
    """Conversations that ask for many answers, or much about each token."""
    message = "<code>a = 1\nb = 2\n</code>\n<update>a = 1\nb = 3\n</update>"
    body = {
        "messages": [{"role": "user", "content": message}],
        "n": generator.choice([1, 2, 10**6]),
        "max_tokens": generator.choice([1, 10**9]),
        "top_logprobs": generator.choice([None, 5, 20]),
        "stop": ["x" * 100] * generator.randint(1, 400),
    }
    return "/v1/chat/completions", body, {}


def _fields(generator: random.Random) -> _Made:
    """An edit as fields that is written where the file is indented widely."""
    _, body, _ = _wide_place(generator)
    return "/v1/code/apply", {"initial_code": body["original"], "edit_snippet": body["update"]}, {}


_KINDS: dict[str, Callable[[random.Random], _Made]] = {
    "references": _compacted,
    "replace_all": _everywhere,
    "replace_all by lines": _everywhere_by_lines,
    "copies": _copies,
    "wide JSON": _wide_unit,
    "wide place": _wide_place,
    "wide steps": _steps,
    "inline markers": _inline,
    "numbers": _numbers,
    "long numbers": _long_numbers,
    "files": _files,
    "batch": _batch,
    "hash lines": _names,
    "answers": _answers,
    "fields": _fields,
}
