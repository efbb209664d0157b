"""Which part of a model each rank holds, by the shapes of its weights."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from batching.errors import ModelLoadError

# Modules whose outputs are split over the ranks, and those that take split inputs.
_COLUMNS = ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj")
_ROWS = ("o_proj", "down_proj")
_TOKENS = ("embed_tokens", "lm_head")


@dataclass(frozen=True, slots=True)
class Split:
    """The place of one rank among `size`."""

    rank: int
    size: int

    def part(self, total: int) -> slice:
        """The rank's own of `total` things. Parts ascend with the ranks and differ by one."""
        return slice(total * self.rank // self.size, total * (self.rank + 1) // self.size)

    def of_weight(self, name: str, shape: Sequence[int]) -> tuple[slice, ...]:
        """The rank's own part of a weight of the whole model, one slice for each dimension."""
        module, kind = name.split(".")[-2:]
        whole = tuple(slice(0, length) for length in shape)
        if module in _COLUMNS or module in _TOKENS:
            return (self.part(shape[0]), *whole[1:])
        if module in _ROWS and kind == "weight":
            return (whole[0], self.part(shape[1]))
        return whole  # such as the bias of a sum, which is added once


def check_divides(counts: Mapping[str, int], num_ranks: int) -> None:
    """Raise ModelLoadError, with the arithmetic, unless the ranks get equal shares of all counts.

    counts: what there is of each, by its name in the plural
    """
    rest = [
        f"{count} {name} = {num_ranks} × {count // num_ranks} + {count % num_ranks}"
        for name, count in counts.items()
        if count % num_ranks
    ]
    if not rest:
        return
    common = math.gcd(*counts.values())
    possible = [str(size) for size in range(2, common + 1) if common % size == 0]
    remedy = f"take {' or '.join(possible)} ranks" if possible else "take one process"
    raise ModelLoadError(f"{num_ranks} ranks cannot share this model: {', '.join(rest)}; {remedy}")
