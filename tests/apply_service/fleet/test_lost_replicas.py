"""What clients get from a replica that died."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from apply_service.fleet.lost_replicas import LostReplicas


def answer_of(sent: list[dict[str, Any]], path: str) -> list[dict[str, Any]]:
    """The messages of an answer, of which the application sends these before it ends."""
    messages: list[dict[str, Any]] = []

    async def application(_scope: Any, _receive: Any, send: Any) -> None:
        for message in sent:
            await send(message)

    async def take(message: Any) -> None:
        messages.append(message)

    scope: Any = {"type": "http", "path": path}
    receive: Any = None
    asyncio.run(LostReplicas(application)(scope, receive, take))
    return messages


@pytest.mark.parametrize("path", ["/v1/apply", "/v1/chat/completions"])
def test_an_answer_that_never_began_is_a_503(path: str) -> None:
    start, body = answer_of([], path)

    headers = dict(start["headers"])
    assert start["status"] == 503
    assert headers[b"retry-after"] == b"1"
    assert int(headers[b"content-length"]) == len(body["body"])
    answer = json.loads(body["body"])
    code = answer["code"] if path == "/v1/apply" else answer["error"]["code"]
    assert code in ("replica-lost", "replica_lost")


@pytest.mark.parametrize("num_sent", [1, 2])
def test_an_answer_that_began_is_left_alone(num_sent: int) -> None:
    sent = [{"type": "http.response.start", "status": 200, "headers": []}]
    sent.append({"type": "http.response.body", "body": b"a", "more_body": True})

    assert answer_of(sent[:num_sent], "/v1/apply") == sent[:num_sent]
