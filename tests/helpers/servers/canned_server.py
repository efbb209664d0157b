"""An HTTP server that gives prescribed answers to `POST /v1/apply`, whole or streamed."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class CannedServer:
    """`bodies` are the received requests; the other members are the answers."""

    port: int
    result: dict[str, Any]
    problem: dict[str, Any] | None = None
    pieces: tuple[str, ...] = ("import", " time\n")
    stream_ends_with: str = "result"
    bodies: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def canned_server(result: Mapping[str, Any]) -> Iterator[CannedServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            canned.bodies.append(body)
            if canned.problem is not None and not body.get("stream"):
                self._answer(422, "application/problem+json", json.dumps(canned.problem).encode())
            elif body.get("stream"):
                self._answer(200, "text/event-stream", b"".join(self._events()))
            else:
                self._answer(200, "application/json", json.dumps(canned.result).encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing: tests read stderr."""

        def _events(self) -> Iterator[bytes]:
            for piece in canned.pieces:
                yield (
                    b"event: token\ndata: %s\n\n"
                    % json.dumps({"text": piece, "region": 0}).encode()
                )
            if canned.stream_ends_with == "result":
                yield b"event: result\ndata: %s\n\n" % json.dumps(canned.result).encode()
            elif canned.stream_ends_with == "error":
                yield b"event: error\ndata: %s\n\n" % json.dumps(canned.problem).encode()

        def _answer(self, status: int, media_type: str, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    canned = CannedServer(port=server.server_address[1], result=dict(result))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield canned
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


PROBLEM = {
    "title": "The result failed its checks",
    "status": 422,
    "detail": "a marker is left",
    "findings": [
        {
            "code": "marker_left",
            "severity": "error",
            "message": "a marker is left",
            "hint": "look at it",
            "line": 3,
        }
    ],
}
