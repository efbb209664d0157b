"""Chooses the number of replicas by the tokens that wait in them. Needs no Ray."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ray.serve.config import AutoscalingContext

QUEUED_TOKENS = "queued_tokens"


class QueuedTokensPolicy:
    """As many replicas as leave each about `target_queued_tokens`.

    Serve's own settings hold beside it: bounds, delays and factors of the autoscaling
    configuration, and the interval in which replicas report.
    """

    def __init__(self, target_queued_tokens: float) -> None:
        """Raises ValueError if the target is not above 0."""
        if target_queued_tokens <= 0:
            raise ValueError(
                f"target_queued_tokens is {target_queued_tokens}; it must be above 0, for example"
                " the tokens that a replica computes in two seconds"
            )
        self._target = target_queued_tokens

    def __call__(self, context: AutoscalingContext) -> tuple[float, dict[str, Any]]:
        """The wanted number of replicas; fractions are rounded up by Serve."""
        reported = (context.aggregated_metrics or {}).get(QUEUED_TOKENS, {})
        if not reported:
            return context.target_num_replicas, {}
        return sum(reported.values()) / self._target, {}
