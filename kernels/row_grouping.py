"""The number of rows that one product computes, from the fastest grouping to the surest."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class RowGrouping(StrEnum):
    """Groupings of rows; the processor decides which one makes a row independent of the others.

    A library may add up the products of few rows in another order than those of many. ALL computes
    all rows at once, TILES always the same number of rows, and SINGLE each row by itself.
    """

    ALL = "all"
    TILES = "tiles"
    SINGLE = "single"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBits:
    """The grouping chosen for each kind of product on this processor.

    reason: why no faster one is taken; empty where the fastest holds.
    digest: of the chosen groupings' results: where it differs, so do the bits of rows.
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
        """True if the fastest grouping is used everywhere."""
        return self.linear is self.attention is RowGrouping.ALL
