"""The requests that an engine has accepted and not ended, and whether it takes another one."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from batching.config import ModelInfo
from batching.errors import (
    DuplicateRequestError,
    EngineStoppedError,
    QueueFullError,
    RequestTooLongError,
)
from batching.request import EngineRequest, Priority


class LiveRequests:
    """Accepts up to `limit` requests at once; safe to use from several threads."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._lock = threading.Lock()
        self._live: dict[str, Priority] = {}
        self._is_accepting = True

    @property
    def live(self) -> Mapping[str, Priority]:
        """A copy of what is live, by request id."""
        with self._lock:
            return dict(self._live)

    def accept(self, request: EngineRequest, info: ModelInfo) -> None:
        """Take a request in.

        Raises RequestTooLongError, QueueFullError, DuplicateRequestError or EngineStoppedError, and
        then nothing happened.
        """
        check_length(request, info)
        with self._lock:
            if not self._is_accepting:
                raise EngineStoppedError("the engine is stopping and takes no new requests")
            limit = self.limit
            if request.priority is Priority.BATCH:
                limit = max(1, limit // 2)  # the rest of the queue is for interactive requests
            if len(self._live) >= limit:
                raise QueueFullError(
                    f"{len(self._live)} requests are queued or running, the limit is {limit};"
                    " try again in a moment"
                )
            if request.request_id in self._live:
                raise DuplicateRequestError(
                    f"a request with the id {request.request_id!r} is still live; use another id"
                )
            self._live[request.request_id] = request.priority

    def __contains__(self, request_id: str) -> bool:
        with self._lock:
            return request_id in self._live

    def end(self, request_id: str) -> bool:
        """A request has its last event; False if it had it before."""
        with self._lock:
            return self._live.pop(request_id, None) is not None

    def refuse_new(self) -> None:
        """Take no new requests from now on."""
        with self._lock:
            self._is_accepting = False


def check_length(request: EngineRequest, info: ModelInfo) -> None:
    """Raise RequestTooLongError, with tokens and limit."""
    num_prompt = len(request.prompt_token_ids)
    num_tokens = num_prompt + request.sampling.max_tokens
    limit = min(info.max_position, info.num_kv_tokens)
    if num_prompt < 1 or request.sampling.max_tokens < 1:
        raise RequestTooLongError(
            f"a prompt of {num_prompt} and an answer of {request.sampling.max_tokens} tokens"
            " cannot be served; both need at least 1"
        )
    if num_tokens > limit:
        raise RequestTooLongError(
            f"a prompt of {num_prompt} and an answer of up to {request.sampling.max_tokens}"
            f" tokens are {num_tokens} together, the limit is {limit} (context of the model"
            f" {info.max_position}, KV cache {info.num_kv_tokens}); send less, or give the KV"
            " cache more memory"
        )
