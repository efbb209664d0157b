"""Who is preempted for whom: nobody whose going would not help."""

from __future__ import annotations

from collections.abc import Sequence

from batching.block_pool import BlockPool
from batching.request import RequestState


def find_victims(
    candidates: Sequence[RequestState],
    block_pool: BlockPool,
    *,
    num_blocks: int,
    num_places: int,
) -> list[RequestState] | None:
    """Who of `candidates` has to go so that `num_blocks` blocks and `num_places` places are free.

    Candidates are sorted by rank, and the last go first; none goes whose blocks turn out not to be
    needed. None if all of them would not do.
    """

    def is_enough(chosen: Sequence[RequestState]) -> bool:
        num_free = block_pool.num_free_without(one.block_ids for one in chosen)
        return num_free >= num_blocks and len(chosen) >= num_places

    if not is_enough(candidates):
        return None
    remaining = list(candidates)
    victims: list[RequestState] = []
    while not is_enough(victims):
        victims.append(remaining.pop())
    for victim in reversed(victims.copy()):
        others = [one for one in victims if one is not victim]
        if is_enough(others):
            victims = others
    return victims
