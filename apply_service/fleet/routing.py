"""Sends the edits of one file to the replica that has its prompt in memory."""

from __future__ import annotations

import random

from ray.serve.experimental.consistent_hash_router import ConsistentHashRouter
from ray.serve.request_router import PendingRequest, RunningReplica

_NUM_CANDIDATES = 2


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
