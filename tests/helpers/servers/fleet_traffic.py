"""Edits of some files, sent through a balancer to replicas with a tiny random model."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from serve_process import ServeProcess, serve_process
from traffic import module_of

from apply_service.fleet.affinity import AFFINITY_HEADER, affinity_of

LIMIT_S = 60.0
_NUM_FUNCTIONS = 6
# Of all files at once, so that a replica has room for its own half and not for all.
_KV_SHARE = 0.75
_KV_BYTES_PER_TOKEN = 256
_PROMPT_TOKENS = 2600


@dataclass
class Tally:
    """What came of the requests."""

    endings: Counter[str] = field(default_factory=Counter)
    prompt_tokens: int = 0
    cached_tokens: int = 0

    @property
    def cached_share(self) -> float:
        """The part of the prompts that was not computed again."""
        return self.cached_tokens / max(1, self.prompt_tokens)


@contextmanager
def replicas(
    model_dir: Path, count: int, *, num_files: int, flags: Sequence[str] = ()
) -> Iterator[list[tuple[ServeProcess, str]]]:
    """Servers that are ready, without Redis unless `flags` name one."""
    room = int(_KV_SHARE * num_files * _PROMPT_TOKENS * _KV_BYTES_PER_TOKEN)
    own = [
        "--model",
        str(model_dir),
        "--profile",
        "embedded",
        "--port",
        "0",
        "--in-process",
        "true",
    ]
    own += ["--kv-memory", str(room), "--cache-memory", "0", *flags]
    with ExitStack() as stack:
        started = [stack.enter_context(serve_process(*own)) for _ in range(count)]
        for server, _ in started:
            server.wait_for("ready: model")
        yield started


async def send_edits(
    url: str,
    *,
    count: int,
    num_files: int,
    names_file: bool = True,
    at_once: int = 4,
    seed: int = 0,
    is_over: asyncio.Event | None = None,
) -> Tally:
    """Send edits of files drawn by chance, each until it has one end."""
    drawn = random.Random(seed)
    numbers = [drawn.randrange(num_files) for _ in range(count)]
    work = iter(enumerate(numbers))
    tally = Tally()
    async with httpx.AsyncClient(base_url=url, timeout=LIMIT_S) as client:

        async def run() -> None:
            for number, file in work:
                if is_over is not None and is_over.is_set():
                    return
                await _send(client, tally, file, number, names_file=names_file)

        await asyncio.gather(*(run() for _ in range(at_once)))
    return tally


async def _send(
    client: httpx.AsyncClient, tally: Tally, file: int, number: int, *, names_file: bool
) -> None:
    path, original = f"file_{file}.py", module_of(_NUM_FUNCTIONS, first=100 * file)
    headers = {}
    if names_file:
        headers[AFFINITY_HEADER] = affinity_of(path=path, original=original, api_key=None)
    body: dict[str, Any] = {
        "original": original,
        "update": f"# ... existing code ...\ntotal = {number}\n",
        "path": path,
        "use_model": "always",
        "constraint": "none",
        "scope": "file",
        "checks": "off",
        "sampling": {"max_tokens": 4},
    }
    try:
        answer = await client.post("/v1/apply", json=body, headers=headers)
    except httpx.TransportError as error:
        tally.endings[type(error).__name__] += 1
        return
    if not answer.is_success:
        tally.endings[str(answer.status_code)] += 1
        return
    tally.endings["200"] += 1
    usage = answer.json()["usage"]
    tally.prompt_tokens += usage["prompt_tokens"]
    tally.cached_tokens += usage["cached_tokens"]


async def home_of_files(url: str, replica_url: str, *, num_files: int) -> list[bool]:
    """For each file, whether that replica answers its edits; nothing else may be sent meanwhile."""
    homes = []
    tally = Tally()
    async with (
        httpx.AsyncClient(base_url=url, timeout=LIMIT_S) as client,
        httpx.AsyncClient(timeout=LIMIT_S) as asker,
    ):
        before = await _num_edits(asker, replica_url)
        for file in range(num_files):
            await _send(client, tally, file, 0, names_file=True)
            after = await _num_edits(asker, replica_url)
            homes.append(after > before)
            before = after
    assert tally.endings == {"200": num_files}, tally.endings
    return homes


async def _num_edits(client: httpx.AsyncClient, url: str) -> float:
    lines = (await client.get(f"{url}/metrics")).text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("apply_requests_total"))
