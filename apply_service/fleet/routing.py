"""Sends the edits of one file to the replica that has its prompt in memory."""

from __future__ import annotations

import random
from collections.abc import Mapping

from ray.serve.experimental.consistent_hash_router import ConsistentHashRouter
from ray.serve.request_router import PendingRequest, RunningReplica

AFFINITY_HEADER = "x-apply-affinity"
# Ray Serve's proxies read it when they start; it names the header that they hash.
HEADER_VARIABLE = "RAY_SERVE_SESSION_ID_HEADER_KEY"

_NUM_CANDIDATES = 2


class HeaderNotConfiguredError(Exception):
    """The proxies of this cluster do not read the affinity header."""


class AffinityRouter(ConsistentHashRouter):  # type: ignore[misc]
    """Consistent hashing of the affinity header; without it, the emptier of two replicas.

    A replica that is full passes its requests on to the next one of the ring.
    """

    async def choose_replicas(
        self,
        candidate_replicas: list[RunningReplica],
        pending_request: PendingRequest | None = None,
    ) -> list[list[RunningReplica]]:
        """Ranks of replicas; Serve takes the one with the shortest queue of the first rank."""
        if pending_request is not None and not pending_request.metadata.session_id:
            pending_request.routing_context.should_backoff = True
            num_candidates = min(_NUM_CANDIDATES, len(candidate_replicas))
            return [random.sample(candidate_replicas, num_candidates)]
        ranks: list[list[RunningReplica]] = await super().choose_replicas(
            candidate_replicas, pending_request
        )
        return ranks


def check_header(environment: Mapping[str, str]) -> None:
    """Raise HeaderNotConfiguredError unless this environment names the affinity header."""
    name = environment.get(HEADER_VARIABLE)
    if name is None or name.lower().replace("_", "-") != AFFINITY_HEADER:
        raise HeaderNotConfiguredError(
            f"{HEADER_VARIABLE} is {name!r}, so Ray Serve would not read the affinity header; set"
            f" it to {AFFINITY_HEADER} wherever `ray start` or `serve run` begins a node"
        )
