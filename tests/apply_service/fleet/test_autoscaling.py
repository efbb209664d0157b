"""The number of replicas that queued tokens ask for."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest

from apply_service.fleet.autoscaling import QueuedTokensPolicy
from apply_service.fleet.ray_header import HeaderNotConfiguredError, check_header


def wanted(reported: dict[str, float] | None, *, target: float = 1000.0) -> float:
    metrics = None if reported is None else {"queued_tokens": reported}
    context: Any = SimpleNamespace(aggregated_metrics=metrics, target_num_replicas=3)
    number, _ = QueuedTokensPolicy(target)(context)
    return number


@pytest.mark.parametrize(
    ("reported", "number"),
    [
        (None, 3),  # nothing is known, so nothing changes
        ({}, 3),
        ({"a": 0.0, "b": 0.0}, 0),  # Serve keeps its minimum
        ({"a": 1000.0, "b": 1000.0}, 2),
        ({"a": 4000.0, "b": 500.0}, 4.5),
    ],
)
def test_replicas_follow_the_tokens_of_all(
    reported: dict[str, float] | None, number: float
) -> None:
    assert wanted(reported) == number


@pytest.mark.parametrize("target", [0, -1.5])
def test_a_target_that_means_nothing_is_refused(target: float) -> None:
    with pytest.raises(ValueError, match=re.escape(f"target_queued_tokens is {target}; it must")):
        QueuedTokensPolicy(target)


@pytest.mark.parametrize("name", ["x-apply-affinity", "X-Apply-Affinity", "x_apply_affinity"])
def test_proxies_that_read_the_header_are_recognised(name: str) -> None:
    check_header({"RAY_SERVE_SESSION_ID_HEADER_KEY": name})


@pytest.mark.parametrize("environment", [{}, {"RAY_SERVE_SESSION_ID_HEADER_KEY": "x-session-id"}])
def test_proxies_that_do_not_are_refused(environment: dict[str, str]) -> None:
    with pytest.raises(HeaderNotConfiguredError, match="set it to x-apply-affinity wherever"):
        check_header(environment)
