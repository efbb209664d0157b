"""A feature: a pure function with a name and one line of why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

View = TypeVar("View")
Rows = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Feature(Generic[View]):
    """A number that tells something of a `View`; the first line of its docstring says what."""

    name: str
    why: str
    compute: Callable[[View], float]


@dataclass(slots=True)
class FeatureSet(Generic[View]):
    """Features of one kind of view, in the order of their definition."""

    features: list[Feature[View]] = field(default_factory=list)

    def add(self, compute: Callable[[View], float]) -> Callable[[View], float]:
        """Add a function as a feature; its name is the feature's."""
        why = (compute.__doc__ or "").partition("\n")[0]
        self.features.append(Feature(compute.__name__, why, compute))
        return compute

    @property
    def names(self) -> list[str]:
        """The names of all features."""
        return [feature.name for feature in self.features]

    def rows(self, views: Sequence[View]) -> Rows:
        """`[num_views, num_features]`: the values of all features for each view."""
        computes = [feature.compute for feature in self.features]
        values = [[compute(view) for compute in computes] for view in views]
        return np.array(values, np.float32).reshape(len(views), len(computes))
