"""One HTTP endpoint that is asked with JSON: its address, its key and its patience."""

from __future__ import annotations

import email.utils
import http.client
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import msgspec

MAX_ATTEMPTS = 6
MAX_WAIT_S = 60.0
_FIRST_WAIT_S = 1.0
_BUSY_STATUSES = (429, 503)
_LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")


class EndpointError(Exception):
    """The endpoint could not be asked, or its answer is not JSON."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Status, JSON content and the seconds of the attempt that got them, waits left out."""

    status: int
    content: Any
    seconds: float


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would send the key and the file to another place: it ends as the error it is."""

    def redirect_request(self, *_arguments: Any) -> None:
        return None


class Endpoint:
    """Asks below one base address. An endpoint that is busy is asked again when it says so."""

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None,
        timeout_s: float,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        parts = urllib.parse.urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise EndpointError(f"{base_url!r} is not an http or https address")
        self.base_url = base_url.rstrip("/")
        self._headers = {"Accept": "application/json"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._timeout_s = timeout_s
        self._sleep = sleep
        handlers: list[urllib.request.BaseHandler] = [_NoRedirects()]
        if parts.hostname in _LOCAL_HOSTS:
            handlers.append(urllib.request.ProxyHandler({}))
        self._opener = urllib.request.build_opener(*handlers)

    def get(self, path: str) -> Reply:
        """The reply to a GET, whatever its status. Raises EndpointError."""
        return self._exchange(path, None)

    def post(self, path: str, body: Mapping[str, Any]) -> Reply:
        """The reply to a POST, whatever its status. Raises EndpointError."""
        return self._exchange(path, msgspec.json.encode(body))

    def _exchange(self, path: str, content: bytes | None) -> Reply:
        headers = self._headers | ({"Content-Type": "application/json"} if content else {})
        request = urllib.request.Request(self.base_url + path, data=content, headers=headers)
        for attempt in range(MAX_ATTEMPTS):
            started = time.perf_counter()
            status, payload, retry_after = self._send(request)
            seconds = time.perf_counter() - started
            if status not in _BUSY_STATUSES or attempt == MAX_ATTEMPTS - 1:
                return Reply(status, _decode(payload, status), seconds)
            self._sleep(min(_wait_s(retry_after, attempt), MAX_WAIT_S))
        raise AssertionError("the last attempt returns")

    def _send(self, request: urllib.request.Request) -> tuple[int, bytes, str | None]:
        try:
            with self._opener.open(request, timeout=self._timeout_s) as response:
                return response.status, response.read(), None
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read(), error.headers.get("Retry-After")
        except (OSError, http.client.HTTPException, ValueError) as error:
            _raise_unreachable(request.full_url, error)


def _raise_unreachable(url: str, error: Exception) -> NoReturn:
    reason = getattr(error, "reason", None) or str(error) or type(error).__name__
    raise EndpointError(f"{url} did not answer: {reason}") from error


def _decode(payload: bytes, status: int) -> Any:
    try:
        return msgspec.json.decode(payload)
    except msgspec.DecodeError as error:
        if status >= 400:
            return {"error": payload[:200].decode(errors="replace")}
        raise EndpointError(f"the answer with status {status} is not JSON: {error}") from error


def _wait_s(retry_after: str | None, attempt: int) -> float:
    """Seconds that the endpoint asks for, as a number or a date; else 1, 2, 4 and so on."""
    if retry_after is not None and retry_after.strip().isdigit():
        return float(retry_after)
    if retry_after is not None:
        try:
            moment = email.utils.parsedate_to_datetime(retry_after).timestamp()
        except ValueError:
            return _FIRST_WAIT_S * 2.0**attempt
        return max(0.0, moment - time.time())
    return _FIRST_WAIT_S * 2.0**attempt
