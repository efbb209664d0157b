"""Checks that the `Host` header of a request is one of this server's names.

A web page can point a name of its own at 127.0.0.1 and then talk to whatever listens there as if
it were its own server; that name in `Host` gives it away.
"""

from __future__ import annotations

import ipaddress
import re

from litestar.types import ASGIApp, Receive, Scope, Send

from apply_service.http.guard.paths import is_open
from apply_service.http.guard.refusal import refuse
from apply_service.http.problems import Problem, make_problem
from apply_service.shown_text import shortened

# A name or an address of version 4, or one of version 6 in brackets, and perhaps a port (RFC 3986).
_HOST = re.compile(r"(?:[\w.~%!$&'()*+,;=-]*|\[(?P<address>[^\]]*)\])(?::[0-9]*)?", re.ASCII)


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
    """Answers 421 to requests for other servers, and 400 to hosts that are none or two.

    `allowed` None allows all names. Health may be asked by anything.
    """

    def __init__(self, app: ASGIApp, allowed: AllowedHosts | None) -> None:
        self._app = app
        self._allowed = allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on."""
        if not is_open(scope["path"]):
            hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
            problem = self._problem_with(hosts)
            if problem is not None:
                await refuse(scope, send, problem)
                return
        await self._app(scope, receive, send)

    def _problem_with(self, hosts: list[str]) -> Problem | None:
        if len(hosts) > 1 or not all(map(_is_host, hosts)):
            return make_problem(
                400,
                code="bad-host",
                title="The request does not say for which host it is",
                detail=f"Host is {' and '.join(repr(shortened(host)) for host in hosts[:2])}",
                remedy="send one Host header: a name or an address, and a port where it needs one",
            )
        if self._allowed is None or all(map(self._allowed.has, hosts)):
            return None
        return make_problem(
            421,
            code="unknown-host",
            title="The request is for another host",
            detail=f"{shortened(hosts[0])!r} is not a name of this server",
            remedy="use a name of the server, or add this one to the setting allowed_hosts",
        )


def _is_host(host: str) -> bool:
    """True if this may be the value of a `Host` header (RFC 9112, section 3.2)."""
    match = _HOST.fullmatch(host.strip())
    if match is None or match["address"] is None:
        return match is not None
    try:
        return ipaddress.ip_address(match["address"]).version == 6
    except ValueError:
        return False


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
