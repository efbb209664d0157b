"""The search of `bench tune`: one setting at a time, and only what is faster beyond the noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from apply_service.config import Settings
from apply_service.evaluate.case_statistics import bootstrap_lower_bound, geometric_mean

# All trials together take a change that is none in so many of a hundred searches.
_MAX_FALSE_SHARE = 0.05
MAX_SWEEPS = 2


@dataclass(frozen=True, slots=True)
class Knob:
    """A setting and the values that it may take."""

    name: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingComparison:
    """How many times as fast the challenger was, one ratio a job.

    `has_run` is False if it could not; `is_worse` says that fewer of its results were trusted.
    """

    ratios: tuple[float, ...] = ()
    has_run: bool = True
    is_worse: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One value of a setting against the one that was best by then.

    `ratio` is the geometric mean over jobs, and `least` what the true one is at least.
    """

    name: str
    value: Any
    against: Any
    ratio: float
    least: float
    is_taken: bool
    note: str = ""


Compare = Callable[[Settings, Settings], SettingComparison]


def search(
    start: Settings, knobs: Sequence[Knob], compare: Compare
) -> tuple[Settings, list[Trial]]:
    """The best settings that were found from `start`, and every trial on the way.

    Goes through all knobs again as long as something changed, `MAX_SWEEPS` times at most.
    `compare` gets the settings that are best so far, and those that challenge them.
    """
    best, trials = start, list[Trial]()
    num_trials = sum(len(knob.values) - 1 for knob in knobs)
    confidence = 1.0 - _MAX_FALSE_SHARE / max(1, num_trials)
    known = set[tuple[bytes, bytes]]()
    for _ in range(MAX_SWEEPS):
        before = best
        for knob in knobs:
            for value in knob.values:
                challenger = msgspec.structs.replace(best, **{knob.name: value})
                pair = (msgspec.json.encode(best), msgspec.json.encode(challenger))
                if challenger == best or pair in known or pair[::-1] in known:
                    continue
                known.add(pair)
                comparison = compare(best, challenger)
                trials.append(_trial_of(knob.name, best, challenger, comparison, confidence))
                best = challenger if trials[-1].is_taken else best
        if best == before:
            break
    return best, trials


def _trial_of(
    name: str,
    best: Settings,
    challenger: Settings,
    comparison: SettingComparison,
    confidence: float,
) -> Trial:
    values = {"value": getattr(challenger, name), "against": getattr(best, name)}
    if not comparison.has_run:
        return Trial(name=name, **values, ratio=0.0, least=0.0, is_taken=False, note="did not run")
    least = bootstrap_lower_bound(comparison.ratios, confidence=confidence)
    return Trial(
        name=name,
        **values,
        ratio=geometric_mean(comparison.ratios),
        least=least,
        is_taken=least > 1.0 and not comparison.is_worse,
        note="fewer results are trusted" if comparison.is_worse else "",
    )
