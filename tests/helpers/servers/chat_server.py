"""A chat server of other makers, whose answers a test decides."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# The status and content of an answer to a request with this body and authorization.
Answer = Callable[[dict[str, Any], str | None], tuple[int, bytes]]
REFUSAL = b'{"error": {"message": "unrecognized request argument"}}'


def completion(
    body: dict[str, Any], content: object, *, logprobs: object = None, finish_reason: str = "stop"
) -> dict[str, Any]:
    """A whole answer with this content, in the shape that all servers share."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_790_000_000,
        "model": body["model"],
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content},
                "logprobs": logprobs,
                "finish_reason": finish_reason,
            }
        ],
        "usage": {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10},
    }


@contextmanager
def chat_server(answer: Answer, *, model: str = "first-model") -> Iterator[str]:
    """Serve chats with one model; gives the base address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet

        def do_GET(self) -> None:
            models = {"object": "list", "data": [{"id": model, "object": "model"}]}
            self._send(200, json.dumps(models).encode())

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._send(*answer(body, self.headers["Authorization"]))

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing: tests read stderr."""

        def _send(self, status: int, content: bytes) -> None:
            with suppress(OSError):  # who asked may have given up
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
