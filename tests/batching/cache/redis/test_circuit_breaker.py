"""A breaker opens on failures that cost something, and tries again beside the others."""

from __future__ import annotations

from batching.cache.redis.circuit_breaker import CircuitBreaker


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def make(clock: Clock) -> CircuitBreaker:
    return CircuitBreaker(
        max_failures=3, max_lost_s=0.2, first_pause_s=1.0, max_pause_s=4.0, clock=clock
    )


def open_at_once(breaker: CircuitBreaker) -> None:
    breaker.failed(lost_s=1.0)
    assert not breaker.can_pass


def test_single_quick_failures_do_not_open_it() -> None:
    breaker = make(Clock())
    for _ in range(10):
        breaker.failed(lost_s=0.09)
        breaker.failed(lost_s=0.09)
        breaker.succeeded()
    assert breaker.state == "closed"
    assert breaker.can_pass
    assert not breaker.try_begin_trial()


def test_it_opens_on_failures_in_a_row_or_on_one_that_cost_time() -> None:
    breaker = make(Clock())
    for _ in range(3):
        assert breaker.can_pass
        breaker.failed()
    assert breaker.state == "open"
    open_at_once(make(Clock()))
    breaker = make(Clock())
    breaker.failed(lost_s=0.15)
    open_at_once(breaker)


def test_one_trial_a_pause_and_longer_pauses() -> None:
    clock = Clock()
    breaker = make(clock)
    open_at_once(breaker)
    for pause in (1.0, 2.0, 4.0, 4.0):
        clock.now += pause - 0.01
        assert not breaker.try_begin_trial()
        clock.now += 0.01
        assert breaker.state == "half_open"
        assert breaker.try_begin_trial()
        assert not breaker.try_begin_trial()
        assert not breaker.can_pass
        breaker.trial_failed()
    clock.now += 4.0
    assert breaker.try_begin_trial()
    breaker.trial_succeeded()
    assert breaker.state == "closed"
    assert breaker.can_pass


def test_who_passed_before_it_opened_neither_closes_it_nor_makes_it_wait_longer() -> None:
    clock = Clock()
    breaker = make(clock)
    open_at_once(breaker)
    breaker.succeeded()
    assert breaker.state == "open"
    clock.now = 0.9
    breaker.failed(lost_s=1.0)
    clock.now = 1.0
    assert breaker.try_begin_trial()


def test_a_relapse_makes_it_wait_longer_and_a_good_time_shorter() -> None:
    clock = Clock()
    breaker = make(clock)
    for pause in (1.0, 2.0, 4.0):
        open_at_once(breaker)
        clock.now += pause - 0.01
        assert not breaker.try_begin_trial()
        clock.now += 0.01
        assert breaker.try_begin_trial()
        breaker.trial_succeeded()
    clock.now += 4.0
    open_at_once(breaker)
    clock.now += 1.0
    assert breaker.try_begin_trial()


def test_a_trial_that_is_never_reported_costs_one_pause() -> None:
    clock = Clock()
    breaker = make(clock)
    open_at_once(breaker)
    clock.now = 1.0
    assert breaker.try_begin_trial()
    clock.now = 1.9
    assert not breaker.try_begin_trial()
    clock.now = 2.0
    assert breaker.try_begin_trial()
