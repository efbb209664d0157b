"""Counters of acceptance: what they expect of a draft, and how fast they change their mind."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup.acceptance import PRIOR_ACCEPTANCE, AcceptanceCounters, DraftKind

KIND = DraftKind("original", 2)
OTHER = DraftKind("output", 2)


def test_nothing_seen_is_the_prior() -> None:
    survival = AcceptanceCounters().survival(KIND, 5)
    assert survival == pytest.approx([PRIOR_ACCEPTANCE**n for n in range(1, 6)])


@settings(deadline=None, max_examples=200)
@given(
    drafts=st.lists(st.tuples(st.integers(0, 200), st.integers(0, 200)), max_size=40),
    num_tokens=st.integers(0, 256),
)
def test_survival_falls_and_is_a_probability(
    drafts: list[tuple[int, int]], num_tokens: int
) -> None:
    counters = AcceptanceCounters()
    for num_verified, num_held in drafts:
        counters.observe(KIND, num_verified=num_verified, num_held=min(num_held, num_verified))
    survival = counters.survival(KIND, num_tokens)
    assert len(survival) == num_tokens
    assert all(0.0 < value <= 1.0 for value in survival)
    assert survival == sorted(survival, reverse=True)


@pytest.mark.parametrize("rate", [0.2, 0.6, 0.95, 1.0])
def test_survival_is_learned(rate: float) -> None:
    generator = random.Random(3)
    counters = AcceptanceCounters()
    for _ in range(2000):
        num_held = next((n for n in range(16) if generator.random() >= rate), 16)
        counters.observe(KIND, num_verified=16, num_held=num_held)
    survival = counters.survival(KIND, 16)
    for position in (0, 1, 3, 7, 15):
        assert survival[position] == pytest.approx(rate ** (position + 1), abs=0.17)


def test_positions_are_told_apart() -> None:
    counters = AcceptanceCounters()
    for _ in range(100):
        counters.observe(KIND, num_verified=64, num_held=8)  # always wrong at the ninth token
    survival = counters.survival(KIND, 64)
    assert survival[7] > 0.9
    assert survival[15] < 0.1


def test_kinds_do_not_mix() -> None:
    counters = AcceptanceCounters()
    for _ in range(50):
        counters.observe(KIND, num_verified=8, num_held=0)
    assert counters.survival(KIND, 1)[0] < 0.1
    assert counters.survival(OTHER, 1) == [PRIOR_ACCEPTANCE]


@pytest.mark.parametrize(("before", "after"), [(0, 8), (8, 0)])
def test_a_change_is_noticed_within_sixty_drafts(before: int, after: int) -> None:
    counters = AcceptanceCounters()
    for _ in range(5000):
        counters.observe(KIND, num_verified=8, num_held=before)
    for _ in range(60):
        counters.observe(KIND, num_verified=8, num_held=after)
    first = counters.survival(KIND, 1)[0]
    assert first > 0.75 if after else first < 0.25


def test_what_is_not_seen_any_more_fades() -> None:
    counters = AcceptanceCounters()
    for _ in range(50):
        counters.observe(KIND, num_verified=8, num_held=0)
    for _ in range(8000):
        counters.observe(OTHER, num_verified=8, num_held=8)
    assert counters.survival(KIND, 1)[0] > 0.9


def test_tokens_behind_the_first_refused_one_say_nothing() -> None:
    short, long = AcceptanceCounters(), AcceptanceCounters()
    short.observe(KIND, num_verified=4, num_held=3)
    long.observe(KIND, num_verified=64, num_held=3)
    assert short.survival(KIND, 64) == long.survival(KIND, 64)


@pytest.mark.parametrize(
    ("match_length", "is_first", "bucket"),
    [(0, True, -1), (40, True, -1), (0, False, 0), (1, False, 1), (3, False, 1), (4, False, 2)],
)
def test_kinds(match_length: int, is_first: bool, bucket: int) -> None:
    kind = DraftKind.of("merge", match_length, is_first=is_first)
    assert kind == DraftKind("merge", bucket)
