"""A connection to `/v1/batches` that reads answers while it is still sending lines."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterable, Iterator
from typing import Any, Self
from urllib.parse import urlsplit

WAIT_S = 20.0


class BatchConnection:
    """Sends lines one by one; leaving the block closes the connection at once."""

    def __init__(self, url: str, *, timeout_s: float = WAIT_S) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._http = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout_s)
        self._http.putrequest("POST", "/v1/batches")
        self._http.putheader("Transfer-Encoding", "chunked")
        self._http.endheaders()
        self._response: http.client.HTTPResponse | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._response is not None:
            self._response.close()
        self._http.close()

    def send(self, line: dict[str, Any] | bytes) -> None:
        """Send one line with its end, or bytes as they are."""
        piece = line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
        self._http.send(b"%x\r\n%s\r\n" % (len(piece), piece))

    def send_all(self, lines: Iterable[dict[str, Any]]) -> None:
        """Send one line after the other, without looking at answers."""
        for line in lines:
            self.send(line)

    def end(self) -> None:
        """End the body."""
        self._http.send(b"0\r\n\r\n")

    def answers(self) -> Iterator[dict[str, Any]]:
        """Answers as they come, until the server has no more."""
        if self._response is None:
            self._response = self._http.getresponse()
            assert self._response.status == 200, self._response.read()
        while line := self._response.readline():
            yield json.loads(line)
