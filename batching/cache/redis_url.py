"""Parses the URL of a Redis: its address, database and login."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from batching.errors import RedisUrlError

DEFAULT_PORT = 6379
_FORM = "redis://[user:password@]host[:port][/db], rediss://… for TLS, or unix:///path[?db=0]"
_REMEDIES = {
    "cluster": "a Redis Cluster is not supported; name one standalone server, or a proxy that"
    " speaks for the cluster",
    "sentinel": "Sentinel is not supported; name the server itself, or a proxy that follows the"
    " master",
}
_OPTIONS = frozenset({"db", "ssl_ca_certs", "ssl_cert_reqs"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisAddress:
    """A server. With `unix_path` host and port mean nothing."""

    host: str = "localhost"
    port: int = DEFAULT_PORT
    unix_path: str | None = None
    db: int = 0
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    has_tls: bool = False
    checks_certificate: bool = True
    ca_path: str | None = None

    def __str__(self) -> str:
        """The URL without its password."""
        if self.unix_path is not None:
            return f"unix://{self.unix_path}?db={self.db}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"redis{'s' if self.has_tls else ''}://{host}:{self.port}/{self.db}"

    @property
    def is_local(self) -> bool:
        """True if the connection never leaves the machine."""
        if self.unix_path is not None or self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

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
    parts = urlsplit(url)
    scheme = parts.scheme.lower()
    for word, remedy in _REMEDIES.items():
        if word in scheme:
            raise RedisUrlError(f"the Redis URL begins with {scheme}://: {remedy}")
    if scheme not in ("redis", "rediss", "unix"):
        raise RedisUrlError(f"the Redis URL begins with {scheme or 'no scheme'}; write {_FORM}")
    if "," in parts.netloc:
        raise RedisUrlError(f"the Redis URL names several hosts: {_REMEDIES['cluster']}")
    options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    unknown = sorted(options.keys() - _OPTIONS)
    if unknown:
        known = ", ".join(sorted(_OPTIONS))
        raise RedisUrlError(f"the Redis URL has the option {unknown[0]!r}; it may have {known}")
    is_unix = scheme == "unix"
    ca_path = options.get("ssl_ca_certs")
    if ca_path is not None and not Path(ca_path).is_file():
        raise RedisUrlError(
            f"ssl_ca_certs of the Redis URL is {ca_path!r}, not a file; name a file of certificates"
        )
    requirement = options.get("ssl_cert_reqs", "required")
    if requirement not in ("required", "none"):
        raise RedisUrlError(f"ssl_cert_reqs is {requirement!r}; it may be required or none")
    host, port = _host_and_port(parts)
    return RedisAddress(
        host=host,
        port=port,
        unix_path=unquote(parts.path) if is_unix else None,
        db=_db_of(options.get("db") or ("" if is_unix else parts.path.strip("/"))),
        username=None if not parts.username else unquote(parts.username),
        password=None if parts.password is None else unquote(parts.password),
        has_tls=scheme == "rediss",
        checks_certificate=requirement == "required",
        ca_path=ca_path,
    )


def _host_and_port(parts: SplitResult) -> tuple[str, int]:
    try:
        host = parts.hostname or "localhost"
        host.encode("idna")
        return host, parts.port or DEFAULT_PORT
    except ValueError as error:
        raise RedisUrlError(f"the Redis URL has no usable host ({error}); write {_FORM}") from error


def _db_of(text: str) -> int:
    if not text:
        return 0
    if not text.isdecimal():
        raise RedisUrlError(f"the database of the Redis URL is {text!r}; write a number such as 0")
    return int(text)
