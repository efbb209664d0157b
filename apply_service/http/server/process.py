"""The serving process: checks that there is only one."""

from __future__ import annotations

from collections.abc import Mapping

from apply_service.http.server.listener import ServerStartError

# What hosting platforms and other servers take for the number of processes.
WORKERS_VARIABLE = "WEB_CONCURRENCY"


class SeveralWorkersError(ServerStartError):
    """More than one worker process was asked for."""


def check_single_process(workers: int, environment: Mapping[str, str]) -> None:
    """Raise SeveralWorkersError unless the setting and the environment ask for one process."""
    asked = {"workers": str(workers), WORKERS_VARIABLE: environment.get(WORKERS_VARIABLE) or "1"}
    for name, value in asked.items():
        if value.strip() != "1":
            raise SeveralWorkersError(
                f"{name} is {value}, the limit is 1: one process holds the model, its queue and"
                " its cache, and batches all requests; a second one would load the model again"
                " and share nothing. Set it to 1, and start more servers behind a load balancer"
                " if one is too slow (they can share a Redis)"
            )
