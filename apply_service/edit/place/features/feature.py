"""A feature: a pure function with a name and one line of why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

View = TypeVar("View")
Value = TypeVar("Value")
Rows = NDArray[np.float32]
# A number for each of several things, or one for all.
Column = NDArray[Any] | float


@dataclass(frozen=True, slots=True)
class Feature(Generic[View, Value]):
    """What tells something of a `View`; the first line of its docstring says what."""

    name: str
    why: str
    compute: Callable[[View], Value]


@dataclass(slots=True)
class FeatureSet(Generic[View, Value]):
    """Features of one kind of view, in the order of their definition."""

    features: list[Feature[View, Value]] = field(default_factory=list)

    def add(self, compute: Callable[[View], Value]) -> Callable[[View], Value]:
        """Add a function as a feature; its name is the feature's."""
        why = (compute.__doc__ or "").partition("\n")[0]
        self.features.append(Feature(compute.__name__, why, compute))
        return compute

    @property
    def names(self) -> list[str]:
        """The names of all features."""
        return [feature.name for feature in self.features]


def rows_of_views(features: FeatureSet[View, float], views: Sequence[View]) -> Rows:
    """`[num_views, num_features]`: the values of all features for each view."""
    computes = [feature.compute for feature in features.features]
    values = [[compute(view) for compute in computes] for view in views]
    return np.array(values, np.float32).reshape(len(views), len(computes))


def rows_of_table(features: FeatureSet[View, Column], table: View, num_rows: int) -> Rows:
    """`[num_rows, num_features]`: the values of all features for each row of a table."""
    rows = np.empty((num_rows, len(features.features)), np.float32)
    for number, feature in enumerate(features.features):
        rows[:, number] = feature.compute(table)
    return rows
