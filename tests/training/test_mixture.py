from __future__ import annotations

from collections import Counter

import pytest

from training.example import Example, TokenChoice
from training.mixture import EXAMPLES_PER_STEP, Mixture


def examples_of(num_with_choice: int, num_without: int) -> list[Example]:
    choice = (TokenChoice(0, (1, 2)),)
    chosen = [Example(f"choice {n}", "", (n,), (1,), choice) for n in range(num_with_choice)]
    return [*chosen, *(Example(f"plain {n}", "", (n,), (1,)) for n in range(num_without))]


def test_every_batch_has_the_share_of_choices() -> None:
    mixture = Mixture(examples_of(7, 30), seed=0, choice_share=0.75)
    for step in range(20):
        batch = mixture.batch(step)
        assert len(batch) == EXAMPLES_PER_STEP
        assert sum(bool(example.choices) for example in batch) == 6


def test_an_epoch_of_each_kind_shows_every_example_once() -> None:
    mixture = Mixture(examples_of(12, 20), seed=3, choice_share=0.5)
    drawn = [example.case_id for step in range(3) for example in mixture.batch(step)]
    counts = Counter(case_id for case_id in drawn if case_id.startswith("choice"))
    assert len(counts) == 12
    assert set(counts.values()) == {1}
    drawn = [example.case_id for step in range(5) for example in mixture.batch(step)]
    assert len({case_id for case_id in drawn if case_id.startswith("plain")}) == 20


@pytest.mark.parametrize("counts", [(5, 0), (0, 5)])
def test_one_kind_alone_fills_the_batches(counts: tuple[int, int]) -> None:
    mixture = Mixture(examples_of(*counts), seed=0)
    assert len(mixture.batch(11)) == EXAMPLES_PER_STEP


def test_batches_depend_on_seed_and_step_alone() -> None:
    examples = examples_of(9, 9)
    straight = Mixture(examples, seed=1)
    wanted = [straight.batch(step) for step in range(6)]
    resumed = Mixture(examples, seed=1)
    assert [resumed.batch(step) for step in (5, 2, 0)] == [wanted[5], wanted[2], wanted[0]]
    assert Mixture(examples, seed=2).batch(0) != wanted[0]


def test_a_sample_is_what_the_first_batches_show() -> None:
    mixture = Mixture(examples_of(9, 9), seed=1)
    assert mixture.sample(11) == [*mixture.batch(0), *mixture.batch(1)][:11]
