"""Builds the guard of a server from its settings."""

from __future__ import annotations

from pathlib import Path

from apply_service.config import Settings
from apply_service.http.guard.exposure import open_key_ring
from apply_service.http.guard.hosts import AllowedHosts
from apply_service.http.guard.keys.authentication import AccessRules
from apply_service.http.guard.keys.key_file import KeyFile, default_key_path
from apply_service.http.guard.limits.count_store import RedisCounts
from apply_service.http.guard.limits.rate_limits import RateLimits, RateLimitSettings
from apply_service.http.guard.stack import Protection
from apply_service.http.server.draining import Drain
from batching.cache.redis.url import parse_redis_url


def key_file_of(settings: Settings) -> KeyFile:
    """The file of API keys that the settings name."""
    return KeyFile(Path(settings.keys_file) if settings.keys_file else default_key_path())


def protection_of(
    settings: Settings, drain: Drain, *, is_private: bool, may_create_key: bool = True
) -> Protection:
    """The protection of a server with these settings; `is_private` if only this machine reaches it.

    Raises ExposedWithoutKeysError or KeyFileError if it would not be safe.
    """
    keys = open_key_ring(
        key_file_of(settings),
        is_named=settings.keys_file is not None,
        is_private=is_private,
        allows_anonymous=settings.allow_anonymous,
        creates_key=settings.create_key and may_create_key,
    )
    shared = None
    if settings.redis_url is not None:
        address = parse_redis_url(settings.redis_url)
        shared = RedisCounts(address, timeout_s=settings.cache_timeout_s)
    return Protection(
        keys=keys,
        rules=AccessRules(
            is_private=is_private,
            allows_anonymous=settings.allow_anonymous,
            metrics_need_key=settings.metrics_need_key,
        ),
        limits=RateLimits(
            RateLimitSettings(
                requests_per_minute=settings.requests_per_minute,
                tokens_per_minute=settings.tokens_per_minute,
                max_concurrent=settings.max_concurrent,
            ),
            shared=shared,
            timeout_s=settings.cache_timeout_s,
        ),
        drain=drain,
        allowed_hosts=_hosts_of(settings, is_private=is_private),
        allowed_origins=_words(settings.allow_origins),
        root_path="/" + settings.root_path.strip("/"),
        receive_timeout_s=settings.receive_timeout_s,
        keep_alive_s=settings.keep_alive_s,
    )


def _hosts_of(settings: Settings, *, is_private: bool) -> AllowedHosts | None:
    """The names that the server goes by, None for all."""
    if settings.allowed_hosts:
        return AllowedHosts(_words(settings.allowed_hosts), allows_loopback=is_private)
    return AllowedHosts((settings.host,), allows_loopback=True) if is_private else None


def _words(text: str) -> tuple[str, ...]:
    """The parts between commas."""
    return tuple(word.strip() for word in text.split(",") if word.strip())
