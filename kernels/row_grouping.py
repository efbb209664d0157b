"""How many rows one product computes, from the fastest way to the surest one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class RowGrouping(StrEnum):
    """A row's bits must not depend on its neighbours; the processor decides which way ensures it.

    A library may add up the products of few rows in another order than those of many. ALL computes
    all rows at once, TILES always the same number of rows, and SINGLE each row by itself.
    """

    ALL = "all"
    TILES = "tiles"
    SINGLE = "single"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBits:
    """The way that was chosen for each kind of product on this processor.

    reason: why no faster one is taken; empty where the fastest holds.
    digest: of what the chosen ways computed: where it differs, so do the bits of rows.
    """

    instruction_set: str
    linear: RowGrouping
    attention: RowGrouping
    reason: str
    digest: str

    def __str__(self) -> str:
        text = f"{self.instruction_set}: linear layers compute rows by {self.linear}"
        text += f", attention by {self.attention}"
        return f"{text} ({self.reason})" if self.reason else text

    @property
    def is_fastest(self) -> bool:
        """True if nothing had to give way to equal bits."""
        return self.linear is self.attention is RowGrouping.ALL
