"""A breaker opens after failures in a row, tries again later and later, and closes on success."""

from __future__ import annotations

from batching.circuit_breaker import CircuitBreaker


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def make(clock: Clock) -> CircuitBreaker:
    return CircuitBreaker(max_failures=3, first_pause_s=1.0, max_pause_s=4.0, clock=clock)


def test_single_failures_do_not_open_it() -> None:
    breaker = make(Clock())
    for _ in range(10):
        breaker.failed()
        breaker.failed()
        breaker.succeeded()
    assert breaker.state == "closed"
    assert breaker.try_pass()


def test_one_trial_a_pause_and_longer_pauses() -> None:
    clock = Clock()
    breaker = make(clock)
    for _ in range(3):
        assert breaker.try_pass()
        breaker.failed()
    assert breaker.state == "open"
    assert not breaker.try_pass()
    for pause in (1.0, 2.0, 4.0, 4.0):
        clock.now += pause - 0.01
        assert not breaker.try_pass()
        clock.now += 0.01
        assert breaker.state == "half_open"
        assert breaker.try_pass()
        assert not breaker.try_pass()
        breaker.failed()
    clock.now += 4.0
    assert breaker.try_pass()
    breaker.succeeded()
    assert breaker.state == "closed"
    assert breaker.try_pass()


def test_a_trial_that_is_never_reported_costs_one_pause() -> None:
    clock = Clock()
    breaker = make(clock)
    for _ in range(3):
        breaker.failed()
    clock.now = 1.0
    assert breaker.try_pass()
    clock.now = 1.9
    assert not breaker.try_pass()
    clock.now = 2.0
    assert breaker.try_pass()
