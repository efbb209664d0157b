"""Sums and bounds of values that belong to owners, several to each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apply_service.edit.place.candidates.line_arrays import Bools, Ints


@dataclass(frozen=True, slots=True)
class Members:
    """`owners [num_members]` rise; each is one of `num_owners`."""

    owners: Ints
    num_owners: int

    def where(self, is_chosen: Bools) -> Members:
        """The chosen members."""
        return Members(self.owners[is_chosen], self.num_owners)

    def counts(self) -> Ints:
        """`[num_owners]`: how many members each has."""
        found: Ints = np.bincount(self.owners, minlength=self.num_owners)
        return found

    def sums(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """`[num_owners]`: the sum of each owner's values."""
        found = np.bincount(self.owners, weights=values, minlength=self.num_owners)
        return found.astype(np.float64)

    def means(self, values: NDArray[Any], default: float) -> NDArray[np.float64]:
        """`[num_owners]`: the mean of each owner's values; `default` without any."""
        counts = self.counts()
        return np.where(counts > 0, self.sums(values) / np.maximum(counts, 1), default)

    def most(self, values: NDArray[Any], default: float) -> NDArray[np.float64]:
        """`[num_owners]`: the greatest of each owner's values; `default` without any."""
        found = np.full(self.num_owners, -np.inf)
        np.maximum.at(found, self.owners, values)
        return np.where(np.isneginf(found), default, found)

    def least(self, values: NDArray[Any], default: float) -> NDArray[np.float64]:
        """`[num_owners]`: the least of each owner's values; `default` without any."""
        return -self.most(-values, -default)
