"""The reliability of a model's probabilities of merges, measured on edits it has not seen.

`python -m training.calibrate` measures it and writes `calibration.json` beside the weights that it
holds for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from apply_service.prompts.errors import CalibrationError

CALIBRATION_NAME = "calibration.json"

Probability = Annotated[float, Meta(ge=0.0, le=1.0)]


class ReliabilityBin(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Answers with a confidence in `[low, high)`, and the number of them that were right."""

    low: Probability
    high: Probability
    num_answers: int
    num_right: int
    mean_confidence: Probability


class Calibration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The reliability of a model's probabilities.

    `prior_scale` is how many nats of the model's log-probability outweigh one of the merge's own
    weights, which are logarithms of odds that real edits bear out: 1 for a model that is as
    reliable as they are, more for a weak one. Above a `temperature` of 1 both are surer than they
    may be: their sum is divided by it (temperature scaling, arXiv:1706.04599), which changes no
    choice but says how probable it is. A result with a decision less probable than `min_confidence`
    is for review; a place that the text leaves open is settled by a model that is as sure of it as
    `confirming_probability`; a model that wanted to write something else with more than
    `max_outside_mass` disagrees with every valid merge (none does if that is 1).

    The defaults are for a model that was never measured. `weights_sha256` is the hash of the
    measured weights file, `dtype` its number format.
    """

    prior_scale: Annotated[float, Meta(ge=0.0)] = 1.0
    temperature: Annotated[float, Meta(gt=0.0)] = 1.0
    min_confidence: Probability = 0.98
    confirming_probability: Probability = 0.98
    max_outside_mass: Probability = 0.999
    weights_sha256: str | None = None
    dtype: str | None = None
    reliability: tuple[ReliabilityBin, ...] = ()


UNMEASURED = Calibration()


def pooled_probabilities(
    scores: Iterable[float], *, prior_scale: float = 1.0, temperature: float = 1.0
) -> tuple[float, ...]:
    """Probabilities, with sum 1, of ways with these scores.

    A score is the model's log-probability plus the scaled weight. Where weights were scaled up to
    count beside the model's nats, both are scaled down again: weights are logarithms of odds. Scale
    and temperature are those of a `Calibration`.
    """
    scale = max(prior_scale, 1.0) * temperature
    cooled = [score / scale for score in scores]
    largest = max(cooled)
    odds = [math.exp(score - largest) for score in cooled]
    total = sum(odds)
    return tuple(one / total for one in odds)


def read_calibration(folder: Path) -> Calibration | None:
    """The calibration in a folder, or None if there is none. Raises `CalibrationError`."""
    path = folder / CALIBRATION_NAME
    if not path.is_file():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=Calibration)
    except (OSError, msgspec.MsgspecError) as error:
        raise CalibrationError(
            f"{path} cannot be read ({error}); measure anew with `make calibrate`"
        ) from error


def write_calibration(folder: Path, calibration: Calibration) -> None:
    """Write the calibration into a folder."""
    content = msgspec.json.format(msgspec.json.encode(calibration), indent=2)
    (folder / CALIBRATION_NAME).write_bytes(content + b"\n")
