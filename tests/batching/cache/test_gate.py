"""The gate compares what was observed; what nobody has observed does not speak against loading."""

from __future__ import annotations

import pytest

from batching.cache.gate import PrefillSpeed, TierGate


def make_gate(tokens_per_s: float | None = 1000.0) -> TierGate:
    prefill = PrefillSpeed()
    if tokens_per_s is not None:
        prefill.observe(int(tokens_per_s), 1.0)
    return TierGate(prefill)


def test_the_unknown_is_tried() -> None:
    assert make_gate().estimate(num_bytes=10**9, num_tokens=1).is_worth_it
    gate = make_gate(None)
    gate.observe_transfer(1000, 1.0)
    estimate = gate.estimate(num_bytes=10**9, num_tokens=1)
    assert estimate.is_worth_it
    assert not estimate.is_hopeless
    assert make_gate().max_bytes(1.0) is None


@pytest.mark.parametrize(
    ("bytes_per_s", "is_worth_it", "is_hopeless"),
    [(1e9, True, False), (1.3e6, True, False), (1.2e6, False, False), (2e5, False, True)],
)
def test_bytes_against_tokens(bytes_per_s: float, is_worth_it: bool, is_hopeless: bool) -> None:
    gate = make_gate()
    gate.observe_transfer(int(bytes_per_s), 1.0)
    estimate = gate.estimate(num_bytes=10**6, num_tokens=1000)
    assert estimate.compute_s == pytest.approx(1.0)
    assert estimate.load_s == pytest.approx(1e6 / bytes_per_s)
    assert (estimate.is_worth_it, estimate.is_hopeless) == (is_worth_it, is_hopeless)


def test_latency_is_no_bandwidth() -> None:
    gate = make_gate()
    gate.observe_latency(0.5)
    gate.observe_transfer(10**6, 1.0)
    assert gate.bandwidth == pytest.approx(2e6)
    assert gate.estimate(num_bytes=2 * 10**6, num_tokens=1).load_s == pytest.approx(1.5)
    assert gate.max_bytes(1.0) == pytest.approx(10**6, abs=1)
    assert gate.max_bytes(0.25) == 0


def test_a_link_that_breaks_down_is_soon_believed() -> None:
    gate = make_gate()
    gate.observe_transfer(10**9, 1.0)
    for _ in range(3):
        gate.observe_transfer(10**6, 1.0)
    assert gate.bandwidth is not None
    assert gate.bandwidth < 1e7
    for _ in range(3):
        gate.observe_transfer(10**9, 1.0)
    assert gate.bandwidth > 1e8
