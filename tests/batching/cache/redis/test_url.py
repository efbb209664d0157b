"""URLs say where a Redis is; what is not supported is refused with what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from batching.cache.redis.url import RedisAddress, parse_redis_url
from batching.errors import RedisUrlError


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("redis://cache", RedisAddress(host="cache")),
        ("redis://", RedisAddress()),
        ("REDIS://10.0.0.1:7000/3", RedisAddress(host="10.0.0.1", port=7000, db=3)),
        ("redis://[::1]:1", RedisAddress(host="::1", port=1)),
        ("redis://:p%40ss@cache", RedisAddress(host="cache", password="p@ss")),
        ("redis://me:pw@c/?db=2", RedisAddress(host="c", username="me", password="pw", db=2)),
        ("rediss://cache", RedisAddress(host="cache", has_tls=True)),
        (
            "rediss://cache?ssl_cert_reqs=none",
            RedisAddress(host="cache", has_tls=True, checks_certificate=False),
        ),
        ("unix:///run/redis.sock?db=4", RedisAddress(unix_path="/run/redis.sock", db=4)),
        (
            "redis+cluster://me:a%2Cb@x:1,[::1]:2,y",
            RedisAddress(
                host="x",
                port=1,
                username="me",
                password="a,b",
                kind="cluster",
                seeds=(("x", 1), ("::1", 2), ("y", 6379)),
            ),
        ),
        (
            "rediss+sentinel://:pw@a,b:7/main/2?sentinel_password=watch",
            RedisAddress(
                host="a",
                port=26379,
                db=2,
                password="pw",
                has_tls=True,
                kind="sentinel",
                seeds=(("a", 26379), ("b", 7)),
                master_name="main",
                sentinel_password="watch",
            ),
        ),
    ],
)
def test_what_a_url_says(url: str, address: RedisAddress) -> None:
    assert parse_redis_url(url) == address


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("redis-cluster://a", "begins with redis-cluster; write redis://"),
        ("redis+sentinel://a:1,b:2", r"names no master; write redis\+sentinel://"),
        ("redis+sentinel://a/main/x", "database of the Redis URL is 'x'"),
        ("redis+cluster://a/1", "a cluster has only 0"),
        ("redis+cluster://a,b:99999", "no usable host"),
        ("redis://[::1", "is none"),
        ("redis://a:1,b:2/0", r"names 2 hosts and one server has one; write redis\+cluster://"),
        ("http://a", "begins with http; write redis://"),
        ("cache:6379", "begins with cache; write"),
        ("", "begins with no scheme"),
        ("redis://a/x", "database of the Redis URL is 'x'"),
        ("redis://a:99999", "no usable host"),
        ("redis://a..b", "no usable host"),
        ("redis://a?retry=1", "has the option 'retry'; it may have db, sentinel_password"),
        ("rediss://a?ssl_ca_certs=/no/such.pem", "'/no/such.pem', not a file"),
        ("rediss://a?ssl_cert_reqs=maybe", "may be required or none"),
    ],
)
def test_what_is_refused(url: str, message: str) -> None:
    with pytest.raises(RedisUrlError, match=message):
        parse_redis_url(url)


def test_a_password_is_never_shown() -> None:
    address = parse_redis_url("rediss://me:hush@cache:7000/1")
    assert "hush" not in str(address) + repr(address)
    assert str(address) == "rediss://cache:7000/1"
    assert str(parse_redis_url("redis://[::1]")) == "redis://[::1]:6379/0"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("redis://localhost", []),
        ("redis://127.0.0.1", []),
        ("redis://[::1]", []),
        ("unix:///run/redis.sock", []),
        ("rediss://:pw@cache", []),
        ("redis://cache", ["TLS", "password"]),
        ("redis://:pw@10.0.0.1", ["TLS"]),
        ("rediss://cache", ["password"]),
        ("rediss://:pw@cache?ssl_cert_reqs=none", ["certificate"]),
    ],
)
def test_a_link_that_others_can_read_is_called_so(url: str, words: list[str]) -> None:
    weakness = parse_redis_url(url).find_weakness()
    assert (weakness is None) == (not words)
    named = [word for word in ("TLS", "certificate", "password") if word in (weakness or "")]
    assert named == words


def test_a_certificate_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    path.write_text("")
    assert parse_redis_url(f"rediss://a?ssl_ca_certs={path}").ca_path == str(path)
