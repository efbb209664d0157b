"""The affinity header: all of its makers agree with docs/affinity.json, and all of them send it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest
from apply_client import (
    ApplyClient,
    AsyncApplyClient,
    Edit,
    FileEdit,
    FilesEdit,
    RetryPolicy,
)
from apply_client.errors import ApplyClientError
from apply_client.protocol import affinity
from node_project import NodeProject

from apply_service.cli.remote import RemoteError, apply_remotely
from apply_service.fleet.affinity import AFFINITY_HEADER, affinity_of
from apply_service.http.schemas import ApplyBody

DOCUMENT = json.loads((Path(__file__).parents[2] / "docs" / "affinity.json").read_text())
VECTORS: list[dict[str, Any]] = DOCUMENT["vectors"]
BY_PATH, BY_TEXT = VECTORS[2], VECTORS[5]
OF_NODE = """
import { affinityOf, subjectOf } from "./dist/affinity.js";
const vectors = JSON.parse(process.argv[1]);
const answers = [];
for (const { path, original, api_key } of vectors) {
  const bytes = new TextEncoder().encode(original);
  for (const content of [original, bytes]) {
    answers.push(await affinityOf(subjectOf(path, content), api_key));
  }
}
console.log(JSON.stringify(answers));
"""


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["affinity"][:8])
@pytest.mark.parametrize("as_sent", [str, str.encode], ids=["text", "bytes"])
def test_service_and_python_client_agree_with_the_vectors(
    vector: dict[str, Any], as_sent: Callable[[str], str | bytes]
) -> None:
    path, original, api_key = vector["path"], as_sent(vector["original"]), vector["api_key"]
    assert affinity_of(path=path, original=original, api_key=api_key) == vector["affinity"]
    subject = affinity.subject_of(path, original)
    assert affinity.affinity_of(subject, api_key) == vector["affinity"]


def test_the_typescript_client_agrees_with_the_vectors(node_project: NodeProject) -> None:
    printed = node_project.run("--input-type=module", "-e", OF_NODE, json.dumps(VECTORS))
    assert json.loads(printed) == [vector["affinity"] for vector in VECTORS for _ in range(2)]


@pytest.mark.parametrize("vector", [BY_PATH, BY_TEXT], ids=["path", "text"])
def test_python_clients_send_it(vector: dict[str, Any]) -> None:
    sent: list[httpx.Request] = []

    def refuse(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(404, text="nothing here")

    options: dict[str, Any] = {"api_key": vector["api_key"], "retry": RetryPolicy(max_retries=0)}
    edit = Edit(vector["original"], "x", path=vector["path"])
    files = FilesEdit([FileEdit(vector["path"] or "", vector["original"], "x")])
    client = ApplyClient(transport=httpx.MockTransport(refuse), **options)
    with pytest.raises(ApplyClientError):
        client.apply_edit(edit)
    with pytest.raises(ApplyClientError), client.stream(edit):
        pass
    with pytest.raises(ApplyClientError):
        client.apply_files(files)
    with pytest.raises(ApplyClientError):
        asyncio.run(
            AsyncApplyClient(transport=httpx.MockTransport(refuse), **options).apply_edit(edit)
        )
    assert [request.headers[AFFINITY_HEADER] for request in sent] == [vector["affinity"]] * 4
    with pytest.raises(ApplyClientError):
        client.models()
    assert AFFINITY_HEADER not in sent[-1].headers


def test_the_typescript_client_sends_it(node_project: NodeProject) -> None:
    script = """
    import { ApplyClient } from "apply-client";
    const { path, original, api_key } = JSON.parse(process.argv[1]);
    const sent = [];
    const fetch = async (_url, { headers }) => {
      sent.push(new Headers(headers).get("X-Apply-Affinity"));
      return new Response("nothing here", { status: 404 });
    };
    const client = new ApplyClient({ apiKey: api_key, fetch });
    const edit = { original, path, update: "x" };
    await client.apply(edit).catch(() => undefined);
    await client.applyStream(edit).next().catch(() => undefined);
    await client.applyFiles({ files: [edit] }).catch(() => undefined);
    await client.models().catch(() => undefined);
    console.log(JSON.stringify(sent));
    """
    printed = node_project.run("--input-type=module", "-e", script, json.dumps(BY_PATH))
    assert json.loads(printed) == [BY_PATH["affinity"]] * 3 + [None]


def test_the_command_line_of_the_service_sends_it() -> None:
    sent: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent.append(self.headers[AFFINITY_HEADER])
            self.send_error(404)

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.handle_request)
        thread.start()
        body = ApplyBody(original=BY_PATH["original"], update="x", path=BY_PATH["path"])
        with pytest.raises(RemoteError):
            apply_remotely(
                f"http://127.0.0.1:{server.server_port}",
                body,
                api_key=BY_PATH["api_key"],
                show_text=lambda _: None,
            )
        thread.join()
    assert sent == [BY_PATH["affinity"]]
