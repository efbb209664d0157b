"""Counter-based random numbers: one uniform draw for each (seed, position), in any order."""

from __future__ import annotations

_MASK_32 = 0xFFFFFFFF
_ROUND_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_INCREMENTS = (0x9E3779B9, 0xBB67AE85)
_NUM_ROUNDS = 10


def philox_4x32(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, ...]:
    """Four 32-bit words of Philox4x32-10 for a 128-bit counter and a 64-bit key, low words first.

    Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011), section 3.3.
    """
    word_0, word_1, word_2, word_3 = counter
    key_0, key_1 = key
    for _ in range(_NUM_ROUNDS):
        product_0 = _ROUND_MULTIPLIERS[0] * word_0
        product_1 = _ROUND_MULTIPLIERS[1] * word_2
        word_0, word_1, word_2, word_3 = (
            (product_1 >> 32) ^ word_1 ^ key_0,
            product_1 & _MASK_32,
            (product_0 >> 32) ^ word_3 ^ key_1,
            product_0 & _MASK_32,
        )
        key_0 = (key_0 + _KEY_INCREMENTS[0]) & _MASK_32
        key_1 = (key_1 + _KEY_INCREMENTS[1]) & _MASK_32
    return word_0, word_1, word_2, word_3


def philox_uniform(seed: int, position: int) -> float:
    """The uniform draw in [0, 1) of `position` under `seed` (both taken modulo 2**64); 53 bits."""
    key = (seed & _MASK_32, (seed >> 32) & _MASK_32)
    counter = (position & _MASK_32, (position >> 32) & _MASK_32, 0, 0)
    high, low, _, _ = philox_4x32(counter, key)
    return float(((high << 32 | low) >> 11) * 2.0**-53)
