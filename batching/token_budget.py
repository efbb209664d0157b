"""Sharing one step's token budget among requests that catch up and requests that speculate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TokenDemand:
    """What one running request could use: its gap (at least 1) and its longest draft."""

    num_uncomputed_tokens: int
    max_draft_tokens: int


@dataclass(frozen=True, slots=True)
class TokenShare:
    """What it gets. Drafts are granted only where the gap closes in this step."""

    num_tokens: int
    max_draft_tokens: int


def share_tokens(demands: Sequence[TokenDemand], budget: int) -> list[TokenShare]:
    """One share for each demand, in order of rank; the rows granted never exceed `budget`.

    Each request gets one row. The rest is split between prefills (first come, first served) and
    drafts (evenly): either may use what the other leaves, and neither gets less than half while it
    wants it. `budget` must be at least the number of demands.
    """
    spare = budget - len(demands)
    prefill_demand = sum(demand.num_uncomputed_tokens - 1 for demand in demands)
    draft_demand = sum(
        demand.max_draft_tokens for demand in demands if demand.num_uncomputed_tokens == 1
    )
    prefill_left = min(prefill_demand, max(spare // 2, spare - draft_demand))
    draft_left = spare - prefill_left
    num_tokens = []
    for demand in demands:
        extra = min(demand.num_uncomputed_tokens - 1, prefill_left)
        prefill_left -= extra
        num_tokens.append(1 + extra)
    wanted_drafts = [
        demand.max_draft_tokens if granted == demand.num_uncomputed_tokens else 0
        for granted, demand in zip(num_tokens, demands, strict=True)
    ]
    drafts = _share_evenly(wanted_drafts, draft_left)
    return [TokenShare(*share) for share in zip(num_tokens, drafts, strict=True)]


def fill_up(demands: Sequence[TokenDemand], num_tokens: Sequence[int], num_spare: int) -> list[int]:
    """`num_tokens` of each demand, and more for the first whose gap is still open.

    They may have the `num_spare` rows that nobody took.
    """
    filled = []
    for demand, granted in zip(demands, num_tokens, strict=True):
        extra = min(demand.num_uncomputed_tokens - granted, num_spare)
        num_spare -= extra
        filled.append(granted + extra)
    return filled


def _share_evenly(wanted: Sequence[int], available: int) -> list[int]:
    """As much as is wanted, or the same for all who want more than there is for each."""
    shares = [0] * len(wanted)
    # The least demanding come first: what they leave is split among the others.
    by_demand = sorted(range(len(wanted)), key=lambda index: wanted[index])
    for num_served, index in enumerate(by_demand):
        shares[index] = min(wanted[index], available // (len(wanted) - num_served))
        available -= shares[index]
    return shares
