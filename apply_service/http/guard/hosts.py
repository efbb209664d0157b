"""Checks that the `Host` header of a request is one of this server's names.

A web page can point a name of its own at 127.0.0.1 and then talk to whatever listens there as if
it were its own server; that name in `Host` gives it away.
"""

from __future__ import annotations

import ipaddress

from litestar.types import ASGIApp, Receive, Scope, Send

from apply_service.http.guard.paths import is_open
from apply_service.http.guard.refusal import refuse
from apply_service.http.problems import make_problem


class AllowedHosts:
    """Names without ports: exact ones, `*.` before a domain for all below it, or `*` for all."""

    def __init__(self, names: tuple[str, ...], *, allows_loopback: bool) -> None:
        self._names = frozenset(name.lower() for name in names if not name.startswith("*."))
        self._suffixes = tuple(name[1:].lower() for name in names if name.startswith("*."))
        self._allows_loopback = allows_loopback

    def has(self, host: str) -> bool:
        """True if the value of a `Host` header is one of these; its port does not matter."""
        name = host_name(host)
        if "*" in self._names or name in self._names or name.endswith(self._suffixes):
            return True
        return self._allows_loopback and is_loopback_name(name)


class HostCheck:
    """Answers 421 to requests for other servers. Health may be asked by any name."""

    def __init__(self, app: ASGIApp, allowed: AllowedHosts) -> None:
        self._app = app
        self._allowed = allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on."""
        if not is_open(scope["path"]):
            hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
            wrong = next((host for host in hosts if not self._allowed.has(host)), None)
            if wrong is not None:
                problem = make_problem(
                    421,
                    code="unknown-host",
                    title="The request is for another host",
                    detail=f"{wrong[:255]!r} is not a name of this server",
                    remedy="use a name of the server, or add this one to the setting allowed_hosts",
                )
                await refuse(scope, send, problem)
                return
        await self._app(scope, receive, send)


def host_name(host: str) -> str:
    """The name or address of a `Host` header, without port and brackets, in small letters."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].removesuffix(".")


def is_loopback_name(name: str) -> bool:
    """True if a name or address can only mean this machine."""
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
