"""Philox against its published vectors, and the uniform draws made of it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from kernels.philox import philox_4x32, philox_uniform

# Known answers for philox4x32-10 from Random123's kat_vectors: counter, key, result.
KNOWN_ANSWERS = [
    (
        (0x00000000, 0x00000000, 0x00000000, 0x00000000),
        (0x00000000, 0x00000000),
        (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8),
    ),
    (
        (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF),
        (0xFFFFFFFF, 0xFFFFFFFF),
        (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
    ),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN_ANSWERS)
def test_known_answers(
    counter: tuple[int, int, int, int], key: tuple[int, int], expected: tuple[int, ...]
) -> None:
    assert philox_4x32(counter, key) == expected


def test_the_uniform_draw_is_made_of_the_first_two_words() -> None:
    high, low, _, _ = KNOWN_ANSWERS[0][2]
    assert philox_uniform(0, 0) == ((high << 32 | low) >> 11) / 2**53


@pytest.mark.parametrize("seed", range(4))
def test_draws_along_positions_are_uniform(seed: int) -> None:
    draws = [philox_uniform(seed, position) for position in range(4000)]
    assert stats.kstest(draws, "uniform").pvalue > 1e-4


def test_draws_along_seeds_are_uniform() -> None:
    draws = [philox_uniform(seed, 0) for seed in range(4000)]
    assert stats.kstest(draws, "uniform").pvalue > 1e-4


def test_neighbouring_positions_are_independent() -> None:
    cells = [0] * 64
    for seed in range(8000):
        row = int(philox_uniform(seed, 0) * 8)
        cells[row * 8 + int(philox_uniform(seed, 1) * 8)] += 1
    assert stats.chisquare(cells).pvalue > 1e-4


@settings(deadline=None)
@given(seed=st.integers(-(2**63), 2**64 - 1), position=st.integers(0, 2**63))
def test_draws_are_in_range_and_seeds_count_modulo_two_to_the_64(seed: int, position: int) -> None:
    draw = philox_uniform(seed, position)
    assert 0.0 <= draw < 1.0
    assert draw == philox_uniform(seed % 2**64, position)


def test_all_words_of_seed_and_position_matter() -> None:
    pairs = [(0, 0), (1, 0), (1 << 32, 0), (0, 1), (0, 1 << 32)]
    assert len({philox_uniform(seed, position) for seed, position in pairs}) == len(pairs)
