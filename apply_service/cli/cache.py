"""`apply-service cache stats|clear`: what the prefix cache keeps in Redis."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from apply_service.apply.errors import ApplyError
from batching.cache.redis.inventory import Inventory, RedisInventory
from batching.cache.redis.url import parse_redis_url
from batching.errors import RedisError


class CacheCommandError(ApplyError):
    """The Redis was not named, or does not answer as it should."""


def add_cache_commands(subparsers: Any) -> None:
    """Register `cache`."""
    parser = subparsers.add_parser(
        "cache", help="count or clear the prompts in Redis", description=__doc__
    )
    parser.add_argument("action", choices=("stats", "clear"), help="count it, or delete it")
    parser.add_argument("--config", type=Path, metavar="FILE", help="TOML file with settings")
    parser.add_argument(
        "--redis",
        dest="redis_url",
        metavar="URL",
        help="the server; unset, that of the settings",
    )


def run_cache_command(args: argparse.Namespace, redis_url: str | None) -> int:
    """Print the cached chunks, or delete them. Raises CacheCommandError or RedisUrlError."""
    if redis_url is None:
        raise CacheCommandError("no Redis is set; name one with --redis URL, or set redis_url")
    address = parse_redis_url(redis_url)
    try:
        inventory = RedisInventory(address)
        try:
            if args.action == "clear":
                print(f"{inventory.clear()} chunks deleted from {address}")
            else:
                print(_format(str(address), inventory.count()), end="")
        finally:
            inventory.close()
    except (OSError, RedisError) as error:
        raise CacheCommandError(
            f"{address} cannot be used: {error}; check the URL and that the server runs"
        ) from error
    return 0


def _format(address: str, inventory: Inventory) -> str:
    num_chunks = sum(group.num_chunks for group in inventory.groups)
    num_bytes = sum(group.num_bytes for group in inventory.groups)
    lines = [
        f"{address}: {num_chunks} chunks, {_megabytes(num_bytes)}",
        *(
            f"  format and layout {group.group}: {group.num_chunks} chunks,"
            f" {_megabytes(group.num_bytes)}"
            for group in inventory.groups
        ),
    ]
    if inventory.used_bytes is not None:
        limit = _megabytes(inventory.max_bytes) if inventory.max_bytes else "unlimited"
        lines.append(
            f"  server: {_megabytes(inventory.used_bytes)} in use, limit {limit},"
            f" policy {inventory.policy}"
        )
    return "\n".join(lines) + "\n"


def _megabytes(num_bytes: int) -> str:
    return f"{num_bytes / (1 << 20):.1f} MiB"
