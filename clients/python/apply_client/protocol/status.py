"""The status of a service: if it answers and takes edits."""

from __future__ import annotations

from dataclasses import dataclass

from apply_client.protocol.answers import check_status, problem_of
from apply_client.protocol.exchange import Answer


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """The status; `is_ready` is false if the model cannot load or the service drains."""

    is_ready: bool
    reason: str | None = None


def status_of(live: Answer, ready: Answer) -> ServiceStatus:
    """The status in two answers about health. Raises APIStatusError if they are refusals."""
    check_status(live)
    if ready.status == 503:
        return ServiceStatus(is_ready=False, reason=problem_of(ready).detail)
    check_status(ready)
    return ServiceStatus(is_ready=True)
