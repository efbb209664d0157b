"""Step costs that change from call to call: budgets without rhyme or reason."""

from __future__ import annotations

import random

from batching.step_costs import CostRates, StepCosts, StepSize


class ErraticCosts(StepCosts):
    """Says something else each time it is asked, so that drafts get any number of rows."""

    def __init__(self, seed: int) -> None:
        super().__init__({1: 1.0, 65: 2.0}, rates=CostRates())
        self._random = random.Random(seed)
        self.num_observed = 0

    def step_ms(self, size: StepSize) -> float:
        """Any positive number; more rows cost a little more on average."""
        return self._random.uniform(0.5, 1.5) * (8 + size.num_rows)

    def observe(self, size: StepSize, milliseconds: float) -> None:
        """Count the call and learn nothing."""
        assert size.num_rows > 0
        assert milliseconds > 0
        self.num_observed += 1
