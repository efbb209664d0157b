"""`POST /v1/apply` with the standard library alone, whole and as server-sent events.

EditFailedError
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

Result = dict[str, Any]
_TIMEOUT_S = 150.0


class EditFailedError(Exception):
    """The server answered with a problem; the message has its detail and findings."""

    def __init__(self, message: str, *, problem: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.problem = problem or {}


def post_edit(host: str, port: int, *, body: Mapping[str, Any]) -> Result:
    """The result of an edit. Raises EditFailedError; OSError if the server is gone."""
    with _posted(host, port, body) as response:
        result: Result = json.load(response)
        return result


def post_streamed_edit(host: str, port: int, *, body: Mapping[str, Any]) -> Iterator[str | Result]:
    """Pieces of the answer as they are written and, last, the result.

    Closing the iterator early closes the connection, which withdraws the request. Raises what
    `post_edit` raises.
    """
    with _posted(host, port, {**body, "stream": True}) as response:
        for name, value in read_events(response):
            if name == "error":
                raise EditFailedError(describe_problem(value))
            if name == "token":
                yield value["text"]
            elif name == "result":
                yield value


def read_events(lines: Iterator[bytes] | http.client.HTTPResponse) -> Iterator[tuple[str, Result]]:
    """Name and JSON value of each server-sent event."""
    name, value = "message", ""
    for line in lines:
        key, _, rest = line.decode().rstrip("\r\n").partition(":")
        if key == "event":
            name = rest.strip()
        elif key == "data":
            value += rest.strip()
        elif not key and value:
            yield name, json.loads(value)
            name, value = "message", ""


def describe_problem(problem: Mapping[str, Any]) -> str:
    """A problem as a person reads it: title, detail, findings with their hints."""
    lines = [f"{problem.get('title', 'error')}: {problem.get('detail', '')}"]
    lines += [f"  {describe_finding(finding)}" for finding in problem.get("findings", ())]
    return "\n".join(lines)


def describe_finding(finding: Mapping[str, Any]) -> str:
    """One finding in a line."""
    place = f" in line {finding['line']}" if finding.get("line") else ""
    return f"{finding['severity']} {finding['code']}{place}: {finding['message']}"


@contextmanager
def _posted(host: str, port: int, body: Mapping[str, Any]) -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection(host, port, timeout=_TIMEOUT_S)
    try:
        connection.request(
            "POST",
            "/v1/apply",
            body=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        response = connection.getresponse()
        if response.status != 200:
            problem = json.load(response)
            raise EditFailedError(describe_problem(problem), problem=problem)
        yield response
    finally:
        connection.close()
