"""The settings of httpx for both clients, and the meaning of its answers and errors."""

from __future__ import annotations

from typing import Any

import httpx

from apply_client.address import Address
from apply_client.errors import APITimeoutError
from apply_client.protocol.affinity import AFFINITY_HEADER, affinity_of
from apply_client.protocol.exchange import Answer, ConnectionFailure
from apply_client.protocol.requests import ApiRequest

# More edits than this at once are held back by the caller's own bound, not by connections.
_MAX_CONNECTIONS = 256


def http_options(address: Address) -> dict[str, Any]:
    """Arguments of `httpx.Client` and `httpx.AsyncClient`; without a proxy for this machine."""
    return {
        "base_url": address.url,
        "headers": address.headers,
        "trust_env": not address.is_loopback,
        "limits": httpx.Limits(max_connections=_MAX_CONNECTIONS, max_keepalive_connections=32),
    }


def answer_head(response: httpx.Response) -> Answer:
    """Status and headers of an answer whose body has not been read."""
    return Answer(response.status_code, dict(response.headers.items()), b"")


def build_request(
    http: httpx.Client | httpx.AsyncClient,
    request: ApiRequest,
    *,
    timeout_s: float,
    connect_timeout_s: float,
) -> httpx.Request:
    """The request as httpx sends it; no limit of a try exceeds the total time left."""
    return http.build_request(
        request.method,
        request.path,
        content=request.content or None,
        headers=_headers_of(http, request),
        timeout=httpx.Timeout(timeout_s, connect=min(connect_timeout_s, timeout_s)),
    )


def _headers_of(http: httpx.Client | httpx.AsyncClient, request: ApiRequest) -> dict[str, str]:
    headers = dict(request.headers)
    if request.subject is not None:
        api_key = http.headers.get("Authorization", "").removeprefix("Bearer ")
        headers[AFFINITY_HEADER] = affinity_of(request.subject, api_key)
    return headers


def failure_of(
    error: httpx.RequestError | TimeoutError,
    http: httpx.Client | httpx.AsyncClient,
    request: ApiRequest,
    *,
    timeout_s: float | None = None,
) -> ConnectionFailure:
    """The failure for an error of the connection."""
    what = f"{request.method} {str(http.base_url).rstrip('/')}{request.path}"
    if isinstance(error, httpx.ConnectTimeout):
        return ConnectionFailure(f"{what}: no connection in time")
    if isinstance(error, httpx.TimeoutException | TimeoutError):
        allowed = "" if timeout_s is None else f" within {timeout_s:.1f} s"
        return ConnectionFailure(f"{what}: no answer{allowed}", is_timeout=True)
    return ConnectionFailure(f"{what}: {error or type(error).__name__}")


def too_late() -> APITimeoutError:
    """The failure of a stream that has used up its time."""
    return APITimeoutError("the stream did not end in time; allow more time")
