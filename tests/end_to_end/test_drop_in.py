"""What a new user does: the client stays, its base address changes. Real processes, real model.

Merges come back right; then Redis is killed in the middle of a load, and every answer has the same
bytes as before; then an update that fits two places is refused with both of their lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from recorded_requests import RecordedRequest, recorded_requests, text_of
from redis_process import RedisProcess, find_redis_server
from serve_process import serve_process, wait_until_ready

import apply_service.cli.demo

pytestmark = [
    pytest.mark.redis,
    pytest.mark.skipif(find_redis_server() is None, reason="no redis-server"),
]

EXAMPLE = Path(apply_service.cli.demo.__file__).parent / "example"
WAIT_S = 60.0
NUM_EDITS = 6
NUM_BEFORE_THE_KILL = 3
CHUNK_TOKENS = 16


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisProcess]:
    redis = RedisProcess()
    yield redis
    redis.kill()


@pytest.fixture(scope="module")
def url(redis: RedisProcess) -> Iterator[str]:
    """A server as its operator starts it, with the embedded model, which is asked each time."""
    cache = (
        "--use-model",
        "always",
        "--redis-url",
        redis.url,
        "--cache-chunk-tokens",
        str(CHUNK_TOKENS),
    )
    with serve_process("--port", "0", *cache) as (_server, url):
        wait_until_ready(url)
        yield url


def client_of(url: str, key: str) -> openai.OpenAI:
    """OpenAI's client as every program makes it, with another base address."""
    return openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0, timeout=WAIT_S)


def merge(client: openai.OpenAI, original: str, update: str) -> str | None:
    content = f"<code>{original}</code>\n<update>{update}</update>"
    answer = client.chat.completions.create(
        model="morph-v3-fast", messages=[{"role": "user", "content": content}]
    )
    return answer.choices[0].message.content


def edit_of(number: int) -> tuple[str, str, str]:
    """A file, an update of it, and the merged file."""
    original = (
        f"def first_{number}(value):\n    return value + {number}\n\n\n"
        f"def second_{number}(value):\n    return value - {number}\n"
    )
    line = f"    return value - {number}\n"
    update = f"# ... existing code ...\ndef second_{number}(value):\n    check(value)\n{line}"
    return original, update, original.replace(line, f"    check(value)\n{line}")


def run_load(url: str, key: str, *, kill: RedisProcess | None = None) -> list[str | None]:
    """The answers to all edits, two at a time; Redis may be killed when some are there."""
    finished = count(1)
    with client_of(url, key) as client, ThreadPoolExecutor(2) as pool:

        def run(number: int) -> str | None:
            original, update, _ = edit_of(number)
            answer = merge(client, original, update)
            if next(finished) == NUM_BEFORE_THE_KILL and kill is not None:
                kill.kill()
            return answer

        return list(pool.map(run, range(NUM_EDITS)))


def redis_figures(url: str, name: str) -> float:
    """The sum of a metric of the tier of Redis, over all reasons."""
    lines = httpx.get(f"{url}/metrics").text.splitlines()
    wanted = [one for one in lines if one.startswith(f"{name}{{") and 'tier="redis"' in one]
    return sum(float(one.split()[-1]) for one in wanted)


def some_requests() -> list[RecordedRequest]:
    """A request of Morph's form and of Relace's, whole and streamed."""
    wanted = ("Morph's documentation and SDK", "Relace's documentation", "camel case, streamed")
    return [request for request in recorded_requests() if request.name in wanted]


def test_raw_clients_of_morph_and_relace(url: str) -> None:
    requests = some_requests()
    assert len(requests) == 3
    for request in requests:
        answer: Any = httpx.post(f"{url}{request.path}", json=request.body, timeout=WAIT_S)
        assert answer.status_code == 200, answer.text
        assert text_of(request, answer.text) == request.expected
        assert answer.headers["X-Apply-Status"] == "applied"
        assert float(answer.headers["X-Apply-Confidence"]) > 0.8


def test_the_client_stays_and_its_base_address_changes(url: str, redis: RedisProcess) -> None:
    settings, gate = (EXAMPLE / name for name in ("settings.py", "gate.py"))
    with client_of(url, "a key of another service") as client:
        merged = merge(client, settings.read_text(), (EXAMPLE / "update.txt").read_text())
        assert merged == (EXAMPLE / "expected.py").read_text()

        load_before = run_load(url, "first")
        assert load_before == [edit_of(number)[2] for number in range(NUM_EDITS)]
        assert redis.all_keys(), "prompts went to Redis"
        misses_before = redis_figures(url, "apply_cache_misses_total")
        assert run_load(url, "second", kill=redis) == load_before
        assert redis_figures(url, "apply_cache_misses_total") > misses_before

        with pytest.raises(openai.UnprocessableEntityError) as caught:
            merge(client, gate.read_text(), (EXAMPLE / "ambiguous.txt").read_text())
    for part in ("needs_review", "ambiguous_place", "line 17", "hint:"):
        assert part in str(caught.value.body)
