"""Requests of all kinds from many clients to a server, and counts of their ends."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx
from pathological_shapes import LEAN_SIZES, SHAPES
from tagged_edit import tagged

Kind = Literal[
    *("whole", "stream", "large", "code_apply", "leave", "bad", "bad_stream"),
    *("chat", "batch", "shape", "deep", "cut_off"),
]

ANSWER_LIMIT_S = 120.0
# Of 20 requests, how many are of each kind; the first list has those that must be answered.
ANSWERED: Sequence[Kind] = ["whole"] * 10 + ["stream"] * 7 + ["code_apply"] * 2 + ["large"]
MIXED: Sequence[Kind] = (
    ["whole"] * 6 + ["stream"] * 5 + ["code_apply"] * 2 + ["leave"] * 3 + ["bad"] * 2
) + ["bad_stream", "large"]
# What no honest client sends: texts that are dear to plan, nested bodies, bodies cut off.
HOSTILE: Sequence[Kind] = [*MIXED, "chat", "chat", "batch", "batch"] + (
    ["shape"] * 6 + ["deep"] * 2 + ["cut_off"] * 2
)
DEEP = b'{"original": ' + b"[" * 20_000
SHAPE_LIMIT_S = 5.0
SMALL_FUNCTIONS = 12
LARGE_FUNCTIONS = 2500
# A client leaves an answer early, not a connection that is being made.
_LEAVING = httpx.Timeout(0.2, connect=ANSWER_LIMIT_S)


@dataclass
class Tally:
    """Counts of requests: by status and, in streams, by the last event."""

    endings: Counter[str] = field(default_factory=Counter)
    seconds: dict[Kind, list[float]] = field(default_factory=dict)
    num_sent: int = 0

    @property
    def num_lost(self) -> int:
        """Number of requests that did not end, or ended as no server would end them."""
        return self.num_sent - sum(self.endings.values())

    def count(self, kind: Kind, ending: str, seconds: float) -> None:
        """Count a request that has ended."""
        self.endings[ending] += 1
        self.seconds.setdefault(kind, []).append(seconds)


def module_of(num_functions: int, first: int = 0) -> str:
    """A Python module of `num_functions` different functions, six lines each."""
    return "\n\n".join(
        f"def step_{number}(value, scale={number}):\n"
        f"    total_{number} = value * scale\n"
        f"    for part in range({number % 7 + 1}):\n"
        f"        total_{number} += part * {number}\n"
        f"    return total_{number}\n"
        for number in range(first, first + num_functions)
    )


def edit_of(number: int, num_functions: int) -> dict[str, Any]:
    """An edit of one function; each number gives another edit."""
    first = number % 50
    at = first + number % num_functions
    update = (
        f"# ... existing code ...\ndef step_{at}(value, scale={at}):\n"
        f"    total_{at} = value * scale + {number}\n"
        f"    for part in range({at % 7 + 1}):\n# ... existing code ...\n"
    )
    return {
        "original": module_of(num_functions, first),
        "update": update,
        "path": "steps.py",
        "scope": "region",
    }


async def send(client: httpx.AsyncClient, kind: Kind, number: int) -> str:
    """Send one request and return its end: a status, with the last event or the error's code."""
    if kind == "leave":
        return await _leave(client, number)
    if kind == "cut_off":
        return await _cut_off(client)
    if kind == "batch":
        return await _batch(client, number)
    if kind == "deep":
        return _ending_of(await client.post("/v1/apply", content=DEEP))
    if kind == "bad":
        body: dict[str, Any] = {"original": "a = 1\n", "update": "", "unheard": number}
    elif kind == "bad_stream":
        body = {"original": "a = 1\n", "update": "", "stream": True}
    elif kind == "shape":
        name = sorted(SHAPES)[number % len(SHAPES)]
        shape = SHAPES[name](LEAN_SIZES[name])
        body = {"original": shape.original, "update": shape.update, "path": shape.path}
        body |= {"deadline_s": SHAPE_LIMIT_S}
    else:
        body = edit_of(number, LARGE_FUNCTIONS if kind == "large" else SMALL_FUNCTIONS)
        body |= {"stream": kind == "stream"}
    path = "/v1/apply"
    if kind == "code_apply":
        path = "/v1/code/apply"
        body = {"initial_code": body["original"], "edit_snippet": body["update"]}
    if kind == "chat":
        path = "/v1/chat/completions"
        messages = tagged(body["original"], body["update"])
        body = {"model": "auto", "messages": messages, "stream": number % 2 == 0}
    return _ending_of(await client.post(path, json=body))


def _ending_of(response: httpx.Response) -> str:
    if response.headers["content-type"].startswith("text/event-stream"):
        lines = response.text.split()
        if lines[-1] == "[DONE]":
            return str(response.status_code)
        events = [line for line in response.text.splitlines() if line.startswith("event: ")]
        return f"{response.status_code} {events[-1].removeprefix('event: ')}"
    if response.is_success:
        return str(response.status_code)
    content = response.json()
    error = content.get("error")
    code = error["code"] if isinstance(error, dict) else content.get("code", error)
    return f"{response.status_code} {code}"


async def _leave(client: httpx.AsyncClient, number: int) -> str:
    """Leave early: half of the time in a stream, half while the answer is made."""
    body = edit_of(number, SMALL_FUNCTIONS) | {"stream": number % 2 == 0}
    body |= {"constraint": "none", "speculation": "off"}
    try:
        async with client.stream("POST", "/v1/apply", json=body, timeout=_LEAVING) as response:
            async for _ in response.aiter_raw():
                break
    except (httpx.ReadTimeout, httpx.WriteTimeout):
        pass
    return "left"


async def _batch(client: httpx.AsyncClient, number: int) -> str:
    """Send a good line, one of invalid JSON and one that is nested; each must have its answer."""
    good = json.dumps({"id": str(number), **edit_of(number, SMALL_FUNCTIONS)}).encode()
    response = await client.post("/v1/batches", content=b"\n".join([good, b"{", DEEP]))
    num_answers = len(response.content.splitlines())
    return str(response.status_code) if num_answers == 3 else f"{num_answers} of 3 answers"


async def _cut_off(client: httpx.AsyncClient) -> str:
    """Leave in the middle of a body."""
    url = client.base_url
    _, writer = await asyncio.open_connection(url.host, url.port)
    head = f"POST /v1/apply HTTP/1.1\r\nHost: {url.host}\r\nContent-Length: 1000\r\n\r\n"
    writer.write(head.encode() + b'{"original": "')
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    return "left"


async def run_clients(
    url: str, kinds: Sequence[Kind], *, num_clients: int, num_requests: int = 0, for_s: float = 0.0
) -> Tally:
    """Run several clients, each with one request at a time, for a number of requests or seconds."""
    tally = Tally()
    numbers = iter(range(num_requests or 1 << 30))
    end = time.monotonic() + (for_s or float("inf"))
    chance = random.Random(8)

    async def one_client(client: httpx.AsyncClient) -> None:
        for number in numbers:
            if time.monotonic() >= end:
                return
            kind = chance.choice(kinds)
            tally.num_sent += 1
            started_at = time.monotonic()
            try:
                ending = await send(client, kind, number)
            except httpx.HTTPError as error:
                ending = f"{type(error).__name__} of {kind}"
            tally.count(kind, ending, time.monotonic() - started_at)
            if ending.startswith(("429", "503")):
                await asyncio.sleep(0.5)

    limits = httpx.Limits(max_connections=num_clients)
    async with httpx.AsyncClient(base_url=url, timeout=ANSWER_LIMIT_S, limits=limits) as client:
        await asyncio.gather(*(one_client(client) for _ in range(num_clients)))
    return tally
