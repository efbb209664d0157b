"""Draws the examples of a training step: a fixed share of them has a choice."""

from __future__ import annotations

import random
from collections.abc import Sequence

from training.example import Example

EXAMPLES_PER_STEP = 8
CHOICE_SHARE = 0.625


class Mixture:
    """Draws the batches of a run: each kind of example in a new order every epoch.

    Where one kind is missing the other fills the batch. The same in every run of the same seed.
    """

    def __init__(
        self,
        examples: Sequence[Example],
        *,
        seed: int,
        choice_share: float = CHOICE_SHARE,
        examples_per_step: int = EXAMPLES_PER_STEP,
    ) -> None:
        self.seed = seed
        self._examples = examples
        self._choice_share = choice_share
        self._examples_per_step = examples_per_step
        with_choice = [example for example in examples if example.choices]
        without = [example for example in examples if not example.choices]
        num_with_choice = round(examples_per_step * choice_share)
        if not with_choice or not without:
            num_with_choice = examples_per_step if with_choice else 0
        self._pools = [
            _Pool(with_choice, num_with_choice, f"{seed}:choice"),
            _Pool(without, examples_per_step - num_with_choice, f"{seed}:plain"),
        ]

    def with_seed(self, seed: int) -> Mixture:
        """The same examples in the orders of another seed."""
        return Mixture(
            self._examples,
            seed=seed,
            choice_share=self._choice_share,
            examples_per_step=self._examples_per_step,
        )

    def batch(self, step: int) -> list[Example]:
        """The examples of a step, those with a choice first."""
        return [example for pool in self._pools for example in pool.batch(step)]

    def sample(self, count: int) -> list[Example]:
        """The first `count` examples that the batches would show."""
        num_steps = -(-count // self._examples_per_step)
        return [example for step in range(num_steps) for example in self.batch(step)][:count]


class _Pool:
    """Examples of one kind, `num_per_step` of which are drawn a step."""

    def __init__(self, examples: Sequence[Example], num_per_step: int, seed: str) -> None:
        self._examples = examples
        self._num_per_step = num_per_step
        self._seed = seed
        self._order: list[int] = []
        self._order_epoch = -1

    def batch(self, step: int) -> list[Example]:
        first = step * self._num_per_step
        return [self._at(position) for position in range(first, first + self._num_per_step)]

    def _at(self, position: int) -> Example:
        epoch, place = divmod(position, len(self._examples))
        if epoch != self._order_epoch:
            self._order = list(range(len(self._examples)))
            random.Random(f"{self._seed}:{epoch}").shuffle(self._order)
            self._order_epoch = epoch
        return self._examples[self._order[place]]
