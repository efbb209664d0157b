"""Sends an edit to a running server and follows its events."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import BinaryIO
from urllib.parse import urlsplit

import msgspec

from apply_service.apply.errors import UsageError
from apply_service.fleet.affinity import AFFINITY_HEADER, affinity_of
from apply_service.http.problems import Problem
from apply_service.http.schemas import ApplyBody, ApplyResult, Base64Content, TokenEvent

# The server has a deadline of its own; this ends a wait for one that is gone.
READ_TIMEOUT_S = 120.0


_UNAUTHORIZED = 401


class RemoteError(Exception):
    """The server could not be asked, or did not answer to the end."""


def apply_remotely(
    url: str, body: ApplyBody, *, api_key: str | None = None, show_text: Callable[[str], None]
) -> ApplyResult | Problem:
    """The result of an edit, or the problem that the server has with it.

    Raises UsageError if the address or the key cannot be used, RemoteError if the server does not
    answer.
    """
    _check_address(url, api_key)
    original = body.original
    content = original.base64 if isinstance(original, Base64Content) else original
    headers = {
        "Content-Type": "application/json",
        "Accept": "text/event-stream",
        AFFINITY_HEADER: affinity_of(path=body.path, original=content, api_key=api_key),
    }
    if api_key:
        headers["Authorization"] = f"Bearer {api_key}"
    request = urllib.request.Request(
        url.rstrip("/") + "/v1/apply",
        data=msgspec.json.encode(msgspec.structs.replace(body, stream=True)),
        headers=headers,
        method="POST",
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=READ_TIMEOUT_S) as response:
            return _follow(response, show_text)
    except urllib.error.HTTPError as error:
        with error:
            return _problem(error.read(), error.code)
    except (OSError, http.client.HTTPException, msgspec.DecodeError, ValueError) as error:
        reason = getattr(error, "reason", None) or str(error) or type(error).__name__
        raise RemoteError(
            f"the server at {url} gave no complete answer: {reason}; check that it runs, or unset"
            " APPLY_SERVICE_URL to load the model here"
        ) from error


def _check_address(url: str, api_key: str | None) -> None:
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        raise UsageError(
            f"APPLY_SERVICE_URL is {url!r}; it must look like http://127.0.0.1:8722, or be unset to"
            " load the model here"
        )
    if api_key is not None and not (api_key.isascii() and api_key.isprintable()):
        raise UsageError(
            "APPLY_API_KEY has a character that no header can carry; set it to the key as"
            " `apply-service key create` printed it"
        )


def _follow(stream: BinaryIO, show_text: Callable[[str], None]) -> ApplyResult | Problem:
    for name, payload in _events(stream):
        if name == "token":
            show_text(msgspec.json.decode(payload, type=TokenEvent).text)
        elif name == "result":
            return msgspec.json.decode(payload, type=ApplyResult)
        elif name == "error":
            return msgspec.json.decode(payload, type=Problem)
    raise http.client.IncompleteRead(b"")


def _events(stream: BinaryIO) -> Iterator[tuple[str, bytes]]:
    """Name and data of each server-sent event."""
    name = ""
    for line in stream:
        field, _, value = line.rstrip(b"\r\n").partition(b": ")
        if field == b"event":
            name = value.decode()
        elif field == b"data":
            yield name, value


def _problem(content: bytes, status: int) -> Problem:
    try:
        problem = msgspec.json.decode(content, type=Problem)
    except msgspec.DecodeError as error:
        raise RemoteError(
            f"the server answered {status} without JSON; check that APPLY_SERVICE_URL is the"
            " address of an apply-service"
        ) from error
    if status != _UNAUTHORIZED:
        return problem
    return msgspec.structs.replace(
        problem,
        remedy="set APPLY_API_KEY to a key; whoever runs the server makes them with"
        " `apply-service key create`",
    )
