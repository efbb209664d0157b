"""The search takes what is faster beyond the noise, and nothing else."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from apply_service.config import Settings
from apply_service.evaluate.tune_search import Knob, SettingComparison, search

START = Settings()
KNOBS = [
    Knob("threads", (None, 1)),
    Knob("max_tokens_per_step", (512, 256, 1024)),
    Knob("max_draft_tokens", (64, 16, 128)),
]


class Machine:
    """Takes seconds that `cost` says, with noise of so much, and remembers what was compared."""

    def __init__(self, cost: Callable[[Settings], float], *, noise: float, seed: int = 0) -> None:
        self.compared: list[tuple[Settings, Settings]] = []
        self._cost = cost
        self._noise = noise
        self._draws = random.Random(seed)

    def __call__(self, mine: Settings, other: Settings) -> SettingComparison:
        self.compared.append((mine, other))
        ratio = self._cost(mine) / self._cost(other)
        return SettingComparison(
            ratios=tuple(ratio * self._draws.lognormvariate(0.0, self._noise) for _ in range(12))
        )


def test_each_setting_gets_its_best_value() -> None:
    def cost(settings: Settings) -> float:
        chunk = {512: 1.0, 256: 1.3, 1024: 0.8}[settings.max_tokens_per_step]
        return chunk * (0.7 if settings.threads == 1 else 1.0)

    machine = Machine(cost, noise=0.02)
    best, trials = search(START, KNOBS, machine)
    assert (best.threads, best.max_tokens_per_step, best.max_draft_tokens) == (1, 1024, 64)
    taken = {trial.name: trial for trial in trials if trial.is_taken}
    assert set(taken) == {"threads", "max_tokens_per_step"}
    assert taken["threads"].ratio == pytest.approx(1 / 0.7, rel=0.05)
    assert 1.0 < taken["threads"].least < taken["threads"].ratio
    assert (taken["threads"].value, taken["threads"].against) == (1, None)


def test_noise_alone_changes_nothing() -> None:
    changed = [search(START, KNOBS, Machine(lambda _: 1.0, noise=0.1, seed=n)) for n in range(4)]
    assert all(best == START for best, _ in changed)


def test_a_setting_is_looked_at_again_after_another_one_changed() -> None:
    def cost(settings: Settings) -> float:
        is_wide = settings.max_draft_tokens == 128
        return 1.0 if not is_wide else (0.5 if settings.threads == 1 else 0.9)

    knobs = [Knob("threads", (None, 1)), Knob("max_draft_tokens", (64, 128))]
    best, trials = search(START, knobs, Machine(cost, noise=0.01))
    assert (best.threads, best.max_draft_tokens) == (1, 128)
    assert [(trial.name, trial.is_taken) for trial in trials] == [
        ("threads", False),
        ("max_draft_tokens", True),
        ("threads", True),
        ("max_draft_tokens", False),
    ]


def test_no_pair_is_compared_twice() -> None:
    machine = Machine(lambda settings: 2.0 - (settings.threads or 0), noise=0.01)
    search(START, KNOBS, machine)
    pairs = {frozenset(map(repr, pair)) for pair in machine.compared}
    assert len(pairs) == len(machine.compared)


@pytest.mark.parametrize(
    ("comparison", "note"),
    [
        (SettingComparison(has_run=False), "did not run"),
        (SettingComparison(ratios=(2.0,) * 12, is_worse=True), "fewer results are trusted"),
        (SettingComparison(ratios=(2.0,)), ""),
    ],
)
def test_what_fails_or_is_worse_or_ran_once_is_not_taken(
    comparison: SettingComparison, note: str
) -> None:
    best, trials = search(START, KNOBS, lambda _mine, _other: comparison)
    assert best == START
    assert {trial.note for trial in trials} == {note}
