"""The Redis of the prefix cache: address, login, encryption, memory and eviction."""

from __future__ import annotations

import os
from collections.abc import Mapping

from apply_service.cli.doctor.check import Check, failed, passed, skipped, warned
from apply_service.config import CACHE_KEY_VARIABLE, ConfigError, Settings
from apply_service.models.cache_keys import read_cache_keys
from batching.cache.redis.inventory import RedisInventory, ServerFacts
from batching.cache.redis.url import RedisAddress, parse_redis_url
from batching.errors import RedisError, RedisUrlError

_SLOW_ROUND_TRIP_S = 0.005


def check_redis(settings: Settings, environment: Mapping[str, str] = os.environ) -> list[Check]:
    """Connect as the cache would; one check for reaching it and one for how it is set up."""
    if settings.redis_url is None:
        return [skipped("redis", "no redis_url is set; computed prompts stay in this process")]
    try:
        address = parse_redis_url(settings.redis_url)
        keys = read_cache_keys(settings, environment)
    except (RedisUrlError, ConfigError) as error:
        return [failed("redis", str(error))]
    try:
        inventory = RedisInventory(address)
        try:
            facts = inventory.server()
        finally:
            inventory.close()
    except (OSError, RedisError) as error:
        return [failed("redis", f"{address}: {error}", remedy=_remedy_of(error, address))]
    return [_reached(address, facts), *_weaknesses(address, facts, is_signed=bool(keys))]


def _remedy_of(error: OSError | RedisError, address: RedisAddress) -> str:
    text = str(error).upper()
    if "NOAUTH" in text:
        return "put the password into the URL: redis://:PASSWORD@host"
    if "WRONGPASS" in text or "INVALID PASSWORD" in text:
        return "correct the user name or password of the URL"
    if "CERTIFICATE" in text:
        return "name the CA with ?ssl_ca_certs=FILE, or use the name that the certificate has"
    if "SSL" in text and address.has_tls:
        return "the server seems to speak without TLS: write redis:// instead of rediss://"
    if "UNSUPPORTED" in text:
        return "use the URL that the message names"
    return "start the server, or correct host and port; until then edits are served without it"


def _reached(address: RedisAddress, server: ServerFacts) -> Check:
    milliseconds = server.round_trip_s * 1e3
    text = f"{address} is Redis {server.version or '?'}, round trip {milliseconds:.2f} ms"
    facts = {
        "address": str(address),
        "version": server.version,
        "round_trip_ms": round(milliseconds, 3),
        "has_tls": address.has_tls,
        "has_password": address.password is not None,
    }
    if server.round_trip_s > _SLOW_ROUND_TRIP_S:
        remedy = "move it nearer: from afar computing a prompt is faster than loading it"
        return warned("redis", text, remedy=remedy, **facts)
    return passed("redis", text, **facts)


def _weaknesses(address: RedisAddress, server: ServerFacts, *, is_signed: bool) -> list[Check]:
    checks = []
    weakness = address.find_weakness()
    if weakness is not None:
        remedy = "use rediss:// with a password, on a network of its own"
        checks.append(warned("redis safety", weakness, remedy=remedy))
    elif not address.is_local and not is_signed:
        text = "values are not signed, so whoever can write to it can change answers"
        remedy = f"give every replica the same {CACHE_KEY_VARIABLE} or cache_key"
        checks.append(warned("redis safety", text, remedy=remedy))
    if server.policy is None:
        text = "the account may not ask for INFO; limit and policy are unknown"
        return [*checks, skipped("redis memory", text)]
    return [*checks, _check_limits(server)]


def _check_limits(server: ServerFacts) -> Check:
    limit = "no limit" if not server.max_bytes else f"limit {server.max_bytes / 1e6:.0f} MB"
    text = f"{limit}, policy {server.policy}"
    facts = {"max_bytes": server.max_bytes, "policy": server.policy}
    if not server.max_bytes:
        remedy = "set maxmemory: without it the cache grows until its time to live ends"
        return warned("redis memory", text, remedy=remedy, **facts)
    if server.policy not in ("allkeys-lru", "allkeys-lfu", "volatile-lru", "volatile-lfu"):
        remedy = "set maxmemory-policy to allkeys-lru: a full server would refuse new prompts"
        return warned("redis memory", text, remedy=remedy, **facts)
    return passed("redis memory", text, **facts)
