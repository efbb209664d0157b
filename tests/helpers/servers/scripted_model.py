"""A model behind OpenAI's API for an agent: it calls one tool once, whatever it is told."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@contextmanager
def scripted_model(tool: str, arguments: Mapping[str, str]) -> Iterator[str]:
    """Serve a model that calls a tool once one is offered, and then stops; give its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            offered = [one["function"]["name"] for one in body.get("tools", ())]
            has_called = any(message["role"] == "tool" for message in body["messages"])
            self._answer(_call(tool, arguments) if tool in offered and not has_called else _DONE)

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing: the agent reports its work."""

        def _answer(self, choice: Mapping[str, Any]) -> None:
            chunk = {
                "id": "scripted",
                "object": "chat.completion.chunk",
                "created": 0,
                "model": "scripted",
                "choices": [{"index": 0, **choice}],
            }
            content = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


_DONE = {"delta": {"role": "assistant", "content": "Done."}, "finish_reason": "stop"}


def _call(tool: str, arguments: Mapping[str, str]) -> dict[str, Any]:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    call = {"index": 0, "id": "call_1", "type": "function", "function": function}
    return {
        "delta": {"role": "assistant", "tool_calls": [call]},
        "finish_reason": "tool_calls",
    }
