"""`apply-service cache` counts and clears, and says what is wrong when it cannot."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from redis_process import RedisProcess, find_redis_server, free_port

from apply_service.cli.main import EXIT_ERROR, EXIT_OK, main


@pytest.fixture
def redis() -> Iterator[RedisProcess]:
    process = RedisProcess()
    yield process
    process.kill()


@pytest.mark.redis
@pytest.mark.skipif(find_redis_server() is None, reason="no redis-server")
def test_stats_and_clear(
    redis: RedisProcess, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    redis.call("SET", "apply-kv:1:0a0b0c0d:x", "y" * 3_000_000)
    redis.call("SET", "mine", "z")
    assert main(["cache", "stats", "--redis", redis.url]) == EXIT_OK
    shown = capsys.readouterr().out
    assert "1 chunks, 2.9 MiB" in shown
    assert "format and layout 1:0a0b0c0d: 1 chunks" in shown
    assert "limit unlimited, policy noeviction" in shown
    monkeypatch.setenv("APPLY_SERVICE_REDIS_URL", redis.url)
    assert main(["cache", "clear"]) == EXIT_OK
    assert "1 chunks deleted" in capsys.readouterr().out
    assert redis.all_keys() == [b"mine"]


def test_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "stats"]) == EXIT_ERROR
    assert "no Redis is set; name one with --redis URL" in capsys.readouterr().err
    assert main(["cache", "clear", "--redis", f"redis://127.0.0.1:{free_port()}"]) == EXIT_ERROR
    assert "check the URL and that the server runs" in capsys.readouterr().err
    assert main(["cache", "stats", "--redis", "redis+sentinel://127.0.0.1:1/b"]) == EXIT_ERROR
    assert "the servers of redis+sentinel://127.0.0.1:1/b" in capsys.readouterr().err


def test_a_wrong_url_is_said_before_the_server_listens(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["serve", "--model", "/no/model", "--port", str(free_port())]
    assert main([*arguments, "--redis-url", "http://127.0.0.1"]) == EXIT_ERROR
    shown = capsys.readouterr().err
    assert shown.startswith("apply-service: the Redis URL begins with http; write redis://")
    assert "listening" not in shown
