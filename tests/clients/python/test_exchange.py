"""When a request is tried again: by a clock that is told, without a network."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from apply_client import APIConnectionError, APITimeoutError, RetryPolicy
from apply_client.protocol.exchange import (
    Answer,
    ConnectionFailure,
    Outcome,
    Send,
    exchange,
    retry_after_s,
)
from hypothesis import given
from hypothesis import strategies as st

OK = Answer(200, {}, b"")
BUSY = Answer(429, {}, b"")
FAILURE = ConnectionFailure("no connection")


def play(
    policy: RetryPolicy, outcomes: Sequence[Outcome], *, send_s: float = 0.0, luck: float = 0.0
) -> tuple[Answer, list[float], float]:
    """The answer, the waits, and the seconds it took; the last outcome is repeated."""
    now = 50.0
    waits: list[float] = []
    left = list(outcomes)
    steps = exchange(policy, clock=lambda: now, draw=lambda: luck)
    outcome: Outcome = None
    while True:
        try:
            effect = steps.send(outcome)
        except StopIteration as end:
            return end.value, waits, now - 50.0
        if isinstance(effect, Send):
            assert effect.timeout_s > 0
            now += min(send_s, effect.timeout_s)
            outcome = left.pop(0) if len(left) > 1 else left[0]
        else:
            waits.append(effect.seconds)
            now += effect.seconds
            outcome = None


def test_waits_double_up_to_the_longest() -> None:
    policy = RetryPolicy(max_retries=6, first_delay_s=0.5, max_delay_s=4.0)
    assert play(policy, [BUSY] * 6 + [OK])[1] == [0.5, 1.0, 2.0, 4.0, 4.0, 4.0]
    assert play(policy, [FAILURE] * 6 + [OK], luck=1.0)[1] == [0.25, 0.5, 1.0, 2.0, 2.0, 2.0]


def test_the_service_may_ask_for_more_and_never_for_less() -> None:
    asked = [Answer(503, {"retry-after": value}, b"") for value in ("7", "0", "soon", "")]
    waits = play(RetryPolicy(), [*asked, OK])[1]
    assert waits == [7.125, 1.0, 2.0, 4.0]


def test_an_answer_that_is_final_is_not_waited_for() -> None:
    for status in (200, 400, 401, 422, 500, 502, 504):
        answer, waits, _ = play(RetryPolicy(), [Answer(status, {}, b"")])
        assert (answer.status, waits) == (status, [])


def test_the_last_outcome_is_what_comes_out() -> None:
    assert play(RetryPolicy(max_retries=2), [FAILURE, BUSY])[0] is BUSY
    with pytest.raises(APIConnectionError, match=r"^no connection \(3 tries"):
        play(RetryPolicy(max_retries=2), [BUSY, FAILURE])
    with pytest.raises(APITimeoutError, match=r"\(1 try, at most 5"):
        play(RetryPolicy(timeout_s=1), [ConnectionFailure("slow", is_timeout=True)], send_s=1.0)


@given(
    outcomes=st.lists(st.sampled_from([BUSY, FAILURE, Answer(429, {"retry-after": "3"}, b"")])),
    max_retries=st.integers(0, 8),
    timeout_s=st.floats(0.1, 60),
    send_s=st.floats(0, 5),
    luck=st.floats(0, 1),
)
def test_the_time_is_never_passed(
    outcomes: list[Answer], max_retries: int, timeout_s: float, send_s: float, luck: float
) -> None:
    policy = RetryPolicy(max_retries=max_retries, timeout_s=timeout_s)
    try:
        _, waits, seconds = play(policy, [*outcomes, OK], send_s=send_s, luck=luck)
    except APIConnectionError:
        return
    assert len(waits) <= max_retries
    assert seconds <= timeout_s + 0.01


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("0", 0.0), ("12", 12.0), ("", None), ("-1", None), ("1.5", None), ("x", None), ("٣", None)],
)
def test_retry_after(value: str, seconds: float | None) -> None:
    assert retry_after_s({"retry-after": value}) == seconds


def test_retry_after_as_a_date() -> None:
    later = datetime.now(UTC) + timedelta(seconds=90)
    seconds = retry_after_s({"retry-after": format_datetime(later, usegmt=True)})
    assert seconds is not None
    assert 30 < seconds < 91
    assert retry_after_s({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0.0


@pytest.mark.parametrize("members", [{"max_retries": -1}, {"timeout_s": 0}, {"timeout_s": -3}])
def test_a_policy_that_cannot_be(members: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="retries must be 0 or more"):
        RetryPolicy(**members)
