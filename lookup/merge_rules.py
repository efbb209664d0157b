"""The rules of a merge grammar: the valid answers as symbols, which are tokens or bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from lookup.constraint import InvalidRulesError


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeText:
    """One valid answer, without its end.

    `weight` is the logarithm of an odds. `borders`, ascending, are offsets at which the text leaves
    what it changes or returns to it; the end of the text may be one.
    """

    symbols: Sequence[int]
    weight: float = 0.0
    borders: Sequence[int] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRules:
    """The valid answers of an edit: few texts that agree for the most part.

    `end_token_ids` close the answer. `prior_scale` is how much the weights count at a decision
    beside the model's log-probabilities.
    """

    texts: Sequence[MergeText]
    end_token_ids: Sequence[int] = ()
    prior_scale: float = 0.0

    def check(self) -> None:
        """Raise `InvalidRulesError` for rules without a text and for weights that are no number."""
        if not self.texts:
            raise InvalidRulesError("the rules have no text; give at least one")
        if not (isfinite(self.prior_scale) and self.prior_scale >= 0):
            raise InvalidRulesError(
                f"prior_scale is {self.prior_scale}; it must be finite and not below 0"
            )
        for number, text in enumerate(self.texts):
            if not isfinite(text.weight):
                raise InvalidRulesError(
                    f"text {number} weighs {text.weight}; weights must be finite"
                )
