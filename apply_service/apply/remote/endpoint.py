"""The address of a server: one exchange at a time, bounded in time and in what is read.

RemoteError ← RemoteUnavailableError, RemoteRefusedError, RemoteUnreadableError
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec

from apply_service.config import JUDGE_KEY_VARIABLE, WRITER_KEY_VARIABLE, ConfigError
from apply_service.shown_text import shown_line

_MAX_CONNECTIONS = 16
_LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
# About the question and its form: 500 too, as servers answer to members that they trip over.
_REFUSED_STATUSES = (400, 413, 415, 422, 500, 501)


@dataclass(frozen=True, slots=True)
class Role:
    """What a server is to us: the beginning of its settings, and the variable with its key.

    Whoever sends more than `max_reply_bytes` is not listened to.
    """

    name: str
    key_variable: str
    max_reply_bytes: int


# An answer is one letter with its figures.
JUDGE = Role("judge", JUDGE_KEY_VARIABLE, 256 << 10)
# An answer is part of a file.
WRITER = Role("writer", WRITER_KEY_VARIABLE, 16 << 20)


class RemoteError(Exception):
    """The server gave no answer."""


class RemoteUnavailableError(RemoteError):
    """The server cannot be reached, does not work, or takes no more questions."""


class RemoteRefusedError(RemoteError):
    """The server does not take this question in this form."""


class RemoteUnreadableError(RemoteError):
    """The server's answer is not what it was asked for."""


class RemoteUrlError(ConfigError):
    """The address of a server, or its key, cannot be used."""


class RemoteEndpoint:
    """An OpenAI-compatible server below one base address, which may end in its chat path.

    A proxy of the environment is used unless the server is on this machine. Redirects are errors:
    they would send the key and the code to another place.
    """

    def __init__(self, url: str, *, role: Role, api_key: str | None = None) -> None:
        self.url = base_of(url, role)
        self.role = role
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        if api_key:
            headers["Authorization"] = f"Bearer {_checked_key(api_key, role)}"
        self._http = httpx.AsyncClient(
            headers=headers,
            follow_redirects=False,
            trust_env=urlsplit(self.url).hostname not in _LOCAL_HOSTS,
            limits=httpx.Limits(max_connections=_MAX_CONNECTIONS),
            timeout=None,  # the caller's limit is for the whole exchange
        )

    async def post(self, path: str, body: dict[str, Any]) -> bytes:
        """The answer to a JSON body. Raises RemoteError; has no limit of time."""
        return await self._exchange("POST", path, msgspec.json.encode(body))

    async def get(self, path: str) -> bytes:
        """The answer to a GET. Raises RemoteError; has no limit of time."""
        return await self._exchange("GET", path, None)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _exchange(self, method: str, path: str, content: bytes | None) -> bytes:
        headers = {} if content is None else {"Content-Type": "application/json"}
        limit = self.role.max_reply_bytes
        payload = bytearray()
        try:
            async with self._http.stream(
                method, self.url + path, content=content, headers=headers
            ) as response:
                async for piece in response.aiter_raw():
                    payload += piece
                    if len(payload) > limit:
                        raise RemoteUnavailableError(f"{path} answered more than {limit} bytes")
        except (httpx.HTTPError, httpx.StreamError) as error:
            reason = shown_line(str(error)) or type(error).__name__
            raise RemoteUnavailableError(f"{path} did not answer: {reason}") from error
        status = response.status_code
        if status == 200:
            return bytes(payload)
        is_refused = status in _REFUSED_STATUSES
        kind = RemoteRefusedError if is_refused else RemoteUnavailableError
        raise kind(f"{path} answered with status {status}")


def base_of(url: str, role: Role) -> str:
    """The base address of a server's API: without the chat path, below /v1 if it has no path.

    Raises RemoteUrlError.
    """
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        is_usable = False
    if is_usable and parts.username is not None:
        raise RemoteUrlError(
            f"{role.name}_url has a name or password in it, which logs might show; put the"
            f" {role.name}'s API key into {role.key_variable}"
        )
    if not is_usable or parts.query or parts.fragment:
        raise RemoteUrlError(
            f"{role.name}_url is not an http or https address of a server; name its base, such as"
            " http://127.0.0.1:8080/v1"
        )
    base = url.rstrip("/").removesuffix("/chat/completions").rstrip("/")
    return base if urlsplit(base).path else f"{base}/v1"


def _checked_key(api_key: str, role: Role) -> str:
    """The key without white space around it. Raises RemoteUrlError, without the key."""
    key = api_key.strip()
    if not key.isascii() or not key.isprintable():
        raise RemoteUrlError(
            f"the {role.name}'s API key has characters that no header may have; set"
            f" {role.key_variable} to the key alone"
        )
    return key
