"""Parses the URL of a Redis: its address or those of its servers, database and login."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qs, unquote, urlsplit

from batching.errors import RedisUrlError

DEFAULT_PORT = 6379
SENTINEL_PORT = 26379
Kind = Literal["server", "cluster", "sentinel"]
_SERVER_FORM = "redis://[user:password@]host[:port][/db] or unix:///path[?db=0]"
_FORMS: dict[Kind, str] = {
    "server": _SERVER_FORM,
    "cluster": "redis+cluster://[user:password@]host[:port][,host[:port]…]",
    "sentinel": "redis+sentinel://[user:password@]host[:port][,host[:port]…]/MASTER[/db]",
}
_FORM = f"{_SERVER_FORM}, {_FORMS['cluster']}, {_FORMS['sentinel']}; rediss for TLS"
_KINDS: dict[str, Kind] = {
    "redis": "server",
    "rediss": "server",
    "unix": "server",
    "redis+cluster": "cluster",
    "rediss+cluster": "cluster",
    "redis+sentinel": "sentinel",
    "rediss+sentinel": "sentinel",
}
_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_OPTIONS = frozenset({"db", "ssl_cert_reqs", "sentinel_username", "sentinel_password", *_FILES})


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisAddress:
    """A server, or those to ask which servers there are. With `unix_path` hosts mean nothing.

    `seeds` are all hosts of the URL: nodes of a cluster, or sentinels of `master_name`. A node that
    was found through them has the same fields and a host of its own.
    """

    host: str = "localhost"
    port: int = DEFAULT_PORT
    unix_path: str | None = None
    db: int = 0
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    has_tls: bool = False
    checks_certificate: bool = True
    ca_path: str | None = None
    cert_path: str | None = None
    key_path: str | None = None
    kind: Kind = "server"
    seeds: tuple[tuple[str, int], ...] = ()
    master_name: str | None = None
    sentinel_username: str | None = None
    sentinel_password: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        """The URL without its password."""
        if self.unix_path is not None:
            return f"unix://{self.unix_path}?db={self.db}"
        scheme = f"redis{'s' if self.has_tls else ''}"
        if self.kind == "cluster":
            return f"{scheme}+cluster://{self._hosts()}"
        if self.kind == "sentinel":
            return f"{scheme}+sentinel://{self._hosts()}/{self.master_name}/{self.db}"
        return f"{scheme}://{_host_text(self.host, self.port)}/{self.db}"

    def _hosts(self) -> str:
        return ",".join(_host_text(host, port) for host, port in self.seeds)

    def at(self, host: str, port: int) -> RedisAddress:
        """The server there, with the same login."""
        return replace(self, host=host, port=port)

    @property
    def is_local(self) -> bool:
        """True if the connection never leaves the machine."""
        hosts = [host for host, _ in self.seeds] or [self.host]
        return self.unix_path is not None or all(map(_is_loopback, hosts))

    def find_weakness(self) -> str | None:
        """The risk of this address for the source code in the cache, None if there is none."""
        if self.is_local:
            return None
        lacks = [
            name
            for name, is_there in (
                ("TLS (rediss://)", self.has_tls),
                ("checked certificate", self.checks_certificate or not self.has_tls),
                ("password", self.password is not None),
            )
            if not is_there
        ]
        if not lacks:
            return None
        return (
            f"{self} has no {' and no '.join(lacks)}: whoever reads the cache can see source code,"
            " and whoever writes to it can change answers"
        )


def parse_redis_url(url: str) -> RedisAddress:
    """The address of a URL. Raises RedisUrlError with what is wrong and what to write instead."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise RedisUrlError(f"the Redis URL is none ({error}); write {_FORM}") from error
    scheme = parts.scheme.lower()
    kind = _KINDS.get(scheme)
    if kind is None:
        raise RedisUrlError(f"the Redis URL begins with {scheme or 'no scheme'}; write {_FORM}")
    options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    _check_options(options)
    is_unix = scheme == "unix"
    login, _, hosts = parts.netloc.rpartition("@")
    username, colon, password = login.partition(":")
    seeds = () if is_unix else _hosts_of(hosts, kind)
    path = [unquote(part) for part in parts.path.strip("/").split("/") if part]
    if kind == "sentinel" and not path:
        raise RedisUrlError(f"the Redis URL names no master; write {_FORMS[kind]}")
    master_name = path.pop(0) if kind == "sentinel" else None
    db = _db_of(options.get("db") or ("" if is_unix else "/".join(path)))
    if kind == "cluster" and db:
        raise RedisUrlError(f"the database of the Redis URL is {db}; a cluster has only 0")
    host, port = seeds[0] if seeds else ("localhost", DEFAULT_PORT)
    return RedisAddress(
        host=host,
        port=port,
        unix_path=unquote(parts.path) if is_unix else None,
        db=db,
        username=unquote(username) or None,
        password=unquote(password) if colon else None,
        has_tls=scheme.startswith("rediss"),
        checks_certificate=options.get("ssl_cert_reqs", "required") == "required",
        ca_path=options.get("ssl_ca_certs"),
        cert_path=options.get("ssl_certfile"),
        key_path=options.get("ssl_keyfile"),
        kind=kind,
        seeds=() if kind == "server" else seeds,
        master_name=master_name,
        sentinel_username=options.get("sentinel_username"),
        sentinel_password=options.get("sentinel_password"),
    )


def _check_options(options: Mapping[str, str]) -> None:
    unknown = sorted(options.keys() - _OPTIONS)
    if unknown:
        known = ", ".join(sorted(_OPTIONS))
        raise RedisUrlError(f"the Redis URL has the option {unknown[0]!r}; it may have {known}")
    for name in _FILES:
        path = options.get(name)
        if path is not None and not Path(path).is_file():
            raise RedisUrlError(
                f"{name} of the Redis URL is {path!r}, not a file; name a file in PEM format"
            )
    requirement = options.get("ssl_cert_reqs", "required")
    if requirement not in ("required", "none"):
        raise RedisUrlError(f"ssl_cert_reqs is {requirement!r}; it may be required or none")


def _hosts_of(text: str, kind: Kind) -> tuple[tuple[str, int], ...]:
    """The hosts between commas, with their ports."""
    default = SENTINEL_PORT if kind == "sentinel" else DEFAULT_PORT
    hosts = text.split(",")
    if len(hosts) > 1 and kind == "server":
        raise RedisUrlError(
            f"the Redis URL names {len(hosts)} hosts and one server has one; write"
            f" {_FORMS['cluster']} or {_FORMS['sentinel']}"
        )
    seeds = []
    for one in hosts:
        try:
            parts = urlsplit(f"//{one}")
            host = parts.hostname or "localhost"
            host.encode("idna")
            seeds.append((host, parts.port or default))
        except ValueError as error:
            raise RedisUrlError(
                f"the Redis URL has no usable host ({error}); write {_FORMS[kind]}"
            ) from error
    return tuple(seeds)


def _host_text(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _db_of(text: str) -> int:
    if not text:
        return 0
    if not text.isdecimal():
        raise RedisUrlError(f"the database of the Redis URL is {text!r}; write a number such as 0")
    return int(text)
