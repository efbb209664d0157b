"""An HTTP server that answers edits as Morph, Relace or apply-service would."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Scripted:
    """One answer: a status, a JSON value or raw bytes, and headers."""

    status: int
    content: Any
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def payload(self) -> bytes:
        if isinstance(self.content, bytes):
            return self.content
        return json.dumps(self.content).encode()


@dataclass(frozen=True)
class Received:
    """One request as it came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class EditEndpoint:
    """`script` has the answers by path, each used once; the last one is repeated."""

    port: int
    script: dict[str, list[Scripted]] = field(default_factory=dict)
    received: list[Received] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answers(self, path: str, *scripted: Scripted) -> None:
        self.script[path] = list(scripted)

    def next_answer(self, path: str) -> Scripted:
        left = self.script.get(path)
        if not left:
            return Scripted(404, {"error": "no such path"})
        return left.pop(0) if len(left) > 1 else left[0]


@contextmanager
def edit_endpoint() -> Iterator[EditEndpoint]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing: tests read stderr."""

        def _answer(self, body: Any) -> None:
            endpoint.received.append(
                Received(self.command, self.path, dict(self.headers.items()), body)
            )
            scripted = endpoint.next_answer(self.path)
            self.send_response(scripted.status)
            for name, value in scripted.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(scripted.payload)))
            self.end_headers()
            self.wfile.write(scripted.payload)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    endpoint = EditEndpoint(port=server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
