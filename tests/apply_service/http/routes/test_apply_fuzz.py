"""Whatever is sent to `/v1/apply` is answered, and never by a mistake of the server."""

from __future__ import annotations

import json
import string
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from litestar.testing import TestClient
from oracle_service import OracleService

from apply_service.http.app import create_app
from apply_service.http.routes.apply import apply
from apply_service.http.routes.chat import chat_completions
from apply_service.http.routes.code_apply import code_apply
from apply_service.http.routes.messages import messages
from apply_service.http.routes.responses import responses
from apply_service.http.schemas import ApplyBody

ANSWERS = {200, 400, 404, 413, 422, 429, 504}
FIELDS = [field for field in ApplyBody.__struct_fields__ if field not in ("original", "update")]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
# Pieces that mean something to one part of the service or another.
PIECES = [
    *("a = 1", "    b = 2", "def f(x):", "class A:", "}", "# ... existing code ...", "// ..."),
    *("<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE", "*** Begin Patch", "*** Update File: a.py"),
    *("*** End Patch", "@@", "@@ -1,2 +1,2 @@", "+c = 3", "-a = 1", "--- a/x", "+++ b/x", "```"),
    *("# remove f", "<code>", "\t", "", "\x0c", "\u2028", "\ufeff", "é", "\U0001f600", "\x00"),
]
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=10), max_size=12).flatmap(
    lambda lines: st.sampled_from(["\n", "\r\n", "\r"]).map(lambda end: end.join(lines))
)
option_values = json_values | st.sampled_from(
    [
        *("on", "off", "auto", "file", "region", "merge", "none", "never", "always", "batch"),
        *("interactive", "diff", "edits", "both", "python", "no-such-language", "../../etc/passwd"),
        *({"max_tokens": 1}, {"temperature": 2.0, "seed": 1}, {"top_p": 0}, ["decisions"], True, 0),
        *(1e308, -1, 0.001, 1 << 63),
    ]
)


@pytest.fixture(scope="module")
def client(tiny_model_dir: Path) -> Iterator[TestClient[Any]]:
    oracle = OracleService(tiny_model_dir)
    oracle.will_answer(["a = 1", "b = 3"])
    with TestClient(create_app(oracle.service, max_body_bytes=100_000)) as client:
        deadline = time.monotonic() + 20
        while client.get("/health/ready").status_code != 200:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        yield client


def fuzz(max_examples: int) -> Any:
    """Limits of one test here; the client serves all of its examples."""
    return settings(
        max_examples=max_examples,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )


def check_answer(client: TestClient[Any], content: bytes) -> None:
    """Post a body; the answer is a result or a problem that is the client's."""
    response = client.post("/v1/apply", content=content)
    assert response.status_code in ANSWERS, (response.status_code, response.text, content)
    if response.headers["content-type"].startswith("text/event-stream"):
        names = [line[7:] for line in response.text.splitlines() if line.startswith("event: ")]
        assert names[-1] in ("result", "error")
        assert not {"result", "error"} & set(names[:-1])
        assert '"code":"internal"' not in response.text
    elif response.status_code != 200:
        problem = response.json()
        assert problem["status"] == response.status_code
        assert problem["detail"]
        assert problem["code"] != "internal"


@fuzz(150)
@given(original=texts, update=texts, use_model=st.sampled_from(["never", "auto", "always"]))
def test_any_texts(client: TestClient[Any], original: str, update: str, use_model: str) -> None:
    body = {"original": original, "update": update, "use_model": use_model}
    check_answer(client, json.dumps(body).encode())


@fuzz(150)
@given(options=st.dictionaries(st.sampled_from(FIELDS), option_values, max_size=4))
def test_any_options(client: TestClient[Any], options: dict[str, Any]) -> None:
    body = {"original": "a = 1\nb = 2\n", "update": "a = 1\nb = 3\n", **options}
    check_answer(client, json.dumps(body).encode())


@fuzz(100)
@given(value=json_values)
def test_any_json(client: TestClient[Any], value: Any) -> None:
    check_answer(client, json.dumps(value).encode())
    check_answer(client, json.dumps({"original": value, "update": value}).encode())


@fuzz(100)
@given(content=st.binary(max_size=60) | st.text(string.printable, max_size=60).map(str.encode))
def test_any_bytes(client: TestClient[Any], content: bytes) -> None:
    check_answer(client, content)
    check_answer(client, b'{"original": "a\\n", "update": "' + content + b'"}')
    check_answer(client, b'{"original": {"base64": "' + content + b'"}, "update": "b"}')


@pytest.mark.parametrize(
    "path",
    sorted(
        path
        for route in (apply, chat_completions, code_apply, messages, responses)
        for path in route.paths
    ),
)
@pytest.mark.parametrize("depth", [100, 1_000, 20_000])
def test_deep_json(client: TestClient[Any], path: str, depth: int) -> None:
    for content in (
        b"[" * depth,
        b'{"original":' * (depth // 3) + b"1" + b"}" * (depth // 3),
        b'{"x": ' + b"[" * depth + b"]" * depth + b"}",
    ):
        assert client.post(path, content=content).status_code == 400
