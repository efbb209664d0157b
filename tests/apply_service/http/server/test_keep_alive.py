"""Comments in silent streams, and nowhere else."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from litestar.types import Message, Receive, Scope, Send

from apply_service.http.server.keep_alive import COMMENT, KeepAlive

STREAM = [(b"content-type", b"text/event-stream; charset=utf-8")]
PLAIN = [(b"content-type", b"application/json")]


async def sent_by(
    chunks: list[bytes], *, headers: list[tuple[bytes, bytes]], num_comments: int
) -> list[bytes]:
    """What goes out; before each chunk the app waits until so many comments have gone."""
    bodies: list[bytes] = []
    has_sent = asyncio.Condition()

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body":
            async with has_sent:
                bodies.append(message["body"])
                has_sent.notify_all()

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for chunk in chunks:
            wanted = bodies.count(COMMENT) + num_comments
            async with has_sent:
                while bodies.count(COMMENT) < wanted:
                    await has_sent.wait()
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        await asyncio.sleep(0.03)

    nowhere = cast(Any, None)
    await asyncio.wait_for(KeepAlive(app, interval_s=0.005)(nowhere, nowhere, send), 10)
    return bodies


def test_silence_is_filled_between_events() -> None:
    events = [b"event: a\ndata: 1\n\n", b"event: b\ndata: 2\n\n"]
    bodies = asyncio.run(sent_by(events, headers=STREAM, num_comments=2))
    assert bodies.count(COMMENT) >= 4
    assert [body for body in bodies if body != COMMENT] == [*events, b""]
    assert bodies[-1] == b"", "nothing comes behind the end"


def test_an_event_is_not_torn() -> None:
    async def run() -> list[bytes]:
        bodies: list[bytes] = []

        async def send(message: Message) -> None:
            if message["type"] == "http.response.body":
                bodies.append(message["body"])

        async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": STREAM})
            for piece in (b"event: a\n", b"data: 1\n\n"):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
                await asyncio.sleep(0.05)
            await send({"type": "http.response.body", "body": b"", "more_body": False})

        nowhere = cast(Any, None)
        await KeepAlive(app, interval_s=0.005)(nowhere, nowhere, send)
        return bodies

    bodies = asyncio.run(run())
    assert bodies[bodies.index(b"event: a\n") + 1] == b"data: 1\n\n"
    assert COMMENT in bodies[bodies.index(b"data: 1\n\n") :]


def test_other_answers_stay_as_they_are() -> None:
    chunks = [b'{"a":', b"1}\n\n"]
    assert asyncio.run(sent_by(chunks, headers=PLAIN, num_comments=0)) == [*chunks, b""]
