from __future__ import annotations

from dataclasses import replace

import pytest

from apply_service.apply.speed_estimate import SpeedEstimate
from batching.events import RequestStats

STATS = replace(
    RequestStats.total(()),
    num_prompt_tokens=1000,
    num_cached_tokens=500,
    num_output_tokens=100,
    prefill_share_s=1.0,
    decode_share_s=0.5,
)


def test_nothing_is_known_before_the_first_request() -> None:
    assert SpeedEstimate().seconds(num_prompt_tokens=1, num_answer_tokens=1) is None


def test_cached_tokens_took_no_time() -> None:
    speed = SpeedEstimate()
    speed.observe(STATS)
    assert speed.seconds(num_prompt_tokens=500, num_answer_tokens=0) == pytest.approx(1.0)
    assert speed.seconds(num_prompt_tokens=0, num_answer_tokens=200) == pytest.approx(1.0)


def test_an_answer_not_seen_yet_costs_like_a_prompt() -> None:
    speed = SpeedEstimate()
    speed.observe(replace(STATS, num_output_tokens=1, decode_share_s=0.0))
    assert speed.seconds(num_prompt_tokens=0, num_answer_tokens=500) == pytest.approx(1.0)


def test_newer_requests_move_the_estimate() -> None:
    speed = SpeedEstimate()
    speed.observe(STATS)
    for _ in range(40):
        speed.observe(replace(STATS, prefill_share_s=2.0))
    assert speed.seconds(num_prompt_tokens=500, num_answer_tokens=0) == pytest.approx(2.0, rel=0.01)


def test_a_request_wholly_cached_says_nothing_of_prefill() -> None:
    speed = SpeedEstimate()
    speed.observe(replace(STATS, num_cached_tokens=1000))
    assert speed.seconds(num_prompt_tokens=1, num_answer_tokens=1) is None


def test_others_on_the_engine_do_not_make_a_request_look_long() -> None:
    speed = SpeedEstimate()
    speed.observe(replace(STATS, prefill_s=10.0, decode_s=60.0))
    assert speed.seconds(num_prompt_tokens=500, num_answer_tokens=0) == pytest.approx(1.0)


def test_a_prompt_that_was_cached_but_for_a_token_says_little_of_one_that_is_not() -> None:
    speed = SpeedEstimate()
    speed.observe(STATS)
    speed.observe(replace(STATS, num_cached_tokens=999, prefill_share_s=0.2))
    assert speed.seconds(num_prompt_tokens=500, num_answer_tokens=0) == pytest.approx(
        1.25, rel=0.01
    )
