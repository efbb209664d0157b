"""Resolves host names with a timeout for each caller."""

from __future__ import annotations

import ipaddress
import socket
import threading
from concurrent.futures import Future
from typing import Any

HostAddress = tuple[int, int, int, str, Any]
"""Family, type, protocol, canonical name and socket address, as of `socket.getaddrinfo`."""


class HostResolver:
    """Asks the system on a thread of its own, because the system's search cannot be ended.

    There is one search for a name at a time: whoever asks meanwhile waits for the same one, and a
    result that came too late is the next caller's. Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._searches: dict[tuple[str, int], Future[list[HostAddress]]] = {}

    def find(self, host: str, port: int, *, timeout_s: float) -> list[HostAddress]:
        """Addresses to connect to. Raises OSError, TimeoutError if the time passes."""
        if _is_address(host):
            return _ask_system(host, port)
        search = self.begin(host, port)
        try:
            return search.result(timeout_s)
        except TimeoutError as error:
            raise TimeoutError(
                f"the address of {host} was not found in {timeout_s:.2g} s"
            ) from error
        finally:
            self.forget(search)

    def begin(self, host: str, port: int) -> Future[list[HostAddress]]:
        """The search that is under way for a name, or a new one; its end is an OSError or found.

        Whoever has seen the end calls `forget`.
        """
        with self._lock:
            search = self._searches.get((host, port))
            if search is None:
                search = self._searches[host, port] = Future()
                threading.Thread(
                    target=_search, args=(host, port, search), name="cache-resolve", daemon=True
                ).start()
            return search

    def forget(self, search: Future[list[HostAddress]]) -> None:
        """Let the next caller search anew, if this search has ended."""
        with self._lock:
            for key, other in list(self._searches.items()):
                if other is search and search.done():
                    del self._searches[key]


def _ask_system(host: str, port: int) -> list[HostAddress]:
    return list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))


def _search(host: str, port: int, result: Future[list[HostAddress]]) -> None:
    try:
        result.set_result(_ask_system(host, port))
    except OSError as error:
        result.set_exception(error)
    except Exception as error:  # whoever waits must hear of it; Redis errors are OSErrors to them
        result.set_exception(OSError(f"the address of {host} cannot be found: {error}"))


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
