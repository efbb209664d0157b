"""Measures what an adapter's probabilities are worth, and writes it beside the weights.

`python -m training.calibrate --base MODEL_DIR --adapter DIR` asks about the dev cases what the
service asks, along the true answers, each with its update and with a brief one. First the scale and
the temperature at which the model's word and the merge's weights surprise least together (Platt
scaling of a sum of log-odds), or nearly so and the model is heard less; then the least confidence
from which on hardly an answer is wrong.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path

import msgspec
import torch

from apply_service.models.manifest import file_sha256
from apply_service.prompts.calibration import (
    UNMEASURED,
    Calibration,
    ReliabilityBin,
    pooled_probabilities,
    write_calibration,
)
from apply_service.prompts.profile import Profile
from kernels.instruction_set import has_fast_bfloat16
from training.adapter_model import DTYPES, WEIGHTS_NAME, AdapterModel, choice_log_probs
from training.case_file import TrainingCase, read_training_cases
from training.example import Example
from training.served import (
    questions_of,
    rewrite,
    rewrite_tersely,
    to_example,
    unscaled_profile,
)

PRIOR_SCALES = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0)
TEMPERATURES = tuple(tenths / 10 for tenths in range(6, 31))
THRESHOLDS = tuple(steps / 200 for steps in range(160, 201))
# Scales that surprise this little more, in nats, are as good; the largest of them is taken.
TIED_SURPRISE = 0.001
# Of all edits, those without a choice too, so many may be wrong and not for review.
MAX_SILENT_SHARE = 0.005
_BIN_EDGES = (0.0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0)


@dataclass(frozen=True, slots=True)
class AskedChoice:
    """One choice: the model's log-probability and the merge's weight of each way, and the truth.

    Weights are relative to the largest.
    """

    log_probs: tuple[float, ...]
    weights: tuple[float, ...]
    truth: int

    def probabilities(self, prior_scale: float, temperature: float = 1.0) -> tuple[float, ...]:
        """Of each way, as the service reckons them at this scale and temperature."""
        scores = (
            log_prob + prior_scale * weight
            for log_prob, weight in zip(self.log_probs, self.weights, strict=True)
        )
        return pooled_probabilities(scores, prior_scale=prior_scale, temperature=temperature)


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """The least probability among an answer's choices up to the first wrong one."""

    confidence: float
    is_right: bool


def ask(
    cases: Iterable[TrainingCase],
    profile: Profile,
    model: AdapterModel,
    *,
    max_tokens: int,
    num_updates: int = 1,
    num_terse: int = 0,
) -> Iterator[tuple[AskedChoice, ...]]:
    """The choices of each edit along its true answers, one for each region; of some none.

    Each case is asked about with `num_updates` updates for the same edit, and `num_terse` more
    that are as brief as agents can be. Regions whose true answer is no valid merge are left out,
    and edits with no other.
    """
    for case in (new for one in cases for new in _rewritten(one, num_updates, num_terse)):
        examples = [
            example
            for question in questions_of(case, profile)
            if question.is_path
            and (example := to_example(question, case, max_tokens=max_tokens)) is not None
        ]
        if examples:
            yield tuple(choice for example in examples for choice in _ask_about(example, model))


def _ask_about(example: Example, model: AdapterModel) -> Iterator[AskedChoice]:
    """The choices of one region."""
    if not example.choices:
        return
    with torch.no_grad():
        found = list(choice_log_probs(model.answer_logits(example).cpu(), example))
    for choice, (log_probs, truth) in zip(example.choices, found, strict=True):
        yield AskedChoice(tuple(log_probs.tolist()), choice.log_prior, truth)


def _rewritten(case: TrainingCase, num_updates: int, num_terse: int) -> Iterator[TrainingCase]:
    yield from filter(None, (rewrite(case, number) for number in range(num_updates)))
    for terse in filter(None, (rewrite_tersely(case, number) for number in range(num_terse))):
        yield terse[0]


def surprise(choices: Sequence[AskedChoice], prior_scale: float, temperature: float = 1.0) -> float:
    """The mean negative log-probability of the truth, in nats."""
    found = (one.probabilities(prior_scale, temperature)[one.truth] for one in choices)
    return sum(-math.log(max(probability, 1e-12)) for probability in found) / max(1, len(choices))


def judge_answer(
    choices: Sequence[AskedChoice], prior_scale: float, temperature: float = 1.0
) -> JudgedAnswer:
    """The answer of the service, which takes the likeliest way at every choice."""
    confidence = 1.0
    for choice in choices:
        found = choice.probabilities(prior_scale, temperature)
        confidence = min(confidence, max(found))
        if found[choice.truth] < max(found):
            return JudgedAnswer(confidence, is_right=False)
    return JudgedAnswer(confidence, is_right=True)


def least_confidence(answers: Sequence[JudgedAnswer]) -> float:
    """The lowest threshold above which few of all answers are wrong, as at every higher one."""
    chosen = THRESHOLDS[-1]
    for threshold in reversed(THRESHOLDS):
        above = [one for one in answers if one.confidence >= threshold]
        num_wrong = sum(not one.is_right for one in above)
        if num_wrong > MAX_SILENT_SHARE * len(answers):
            break
        chosen = threshold
    return chosen


def reliability(answers: Sequence[JudgedAnswer]) -> Iterator[ReliabilityBin]:
    """How often answers were right, by how sure they were."""
    for low, high in pairwise(_BIN_EDGES):
        inside = [
            one
            for one in answers
            if low <= one.confidence < high or one.confidence == high == _BIN_EDGES[-1]
        ]
        if inside:
            yield ReliabilityBin(
                low=low,
                high=high,
                num_answers=len(inside),
                num_right=sum(one.is_right for one in inside),
                mean_confidence=round(sum(one.confidence for one in inside) / len(inside), 4),
            )


def calibrate(asked: Sequence[Sequence[AskedChoice]]) -> Calibration:
    """The scale and the thresholds that fit these answers best. Raises `ValueError` for none."""
    choices = [choice for one in asked for choice in one]
    if not choices:
        raise ValueError("no question has a choice; give more cases")
    # For each scale the least surprise, and the temperature that has it.
    least = {
        scale: min((surprise(choices, scale, one), one) for one in TEMPERATURES)
        for scale in PRIOR_SCALES
    }
    tied = min(least.values())[0] + TIED_SURPRISE
    prior_scale = max(scale for scale in PRIOR_SCALES if least[scale][0] <= tied)
    temperature = least[prior_scale][1]
    answers = [judge_answer(one, prior_scale, temperature) for one in asked]
    threshold = least_confidence(answers)
    return Calibration(
        prior_scale=prior_scale,
        temperature=temperature,
        min_confidence=threshold,
        confirming_probability=threshold,
        reliability=tuple(
            reliability([one for one, found in zip(answers, asked, strict=True) if found])
        ),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the calibration and print what it rests on."""
    served = "bfloat16" if has_fast_bfloat16() else "float32"
    parser = argparse.ArgumentParser(prog="python -m training.calibrate", description=__doc__)
    parser.add_argument("--base", type=Path, required=True, help="folder of the prepared model")
    parser.add_argument("--adapter", type=Path, required=True, help="where to write it too")
    parser.add_argument("--cases", type=Path, default=Path("build/cases/dev.jsonl"))
    parser.add_argument("--every", type=int, default=1, help="only each n-th case")
    parser.add_argument("--updates", type=int, default=1, help="updates for each edit")
    parser.add_argument("--num-terse", type=int, default=1, help="brief updates for each edit")
    parser.add_argument("--max-tokens", type=int, default=1600, help="leave longer questions out")
    parser.add_argument(
        "--max-outside-mass",
        type=float,
        default=UNMEASURED.max_outside_mass,
        help="with more than this beside the valid merges the model disagrees; 1 is never",
    )
    parser.add_argument(
        "--dtype", choices=sorted(DTYPES), default=served, help="by default what serves on this CPU"
    )
    chosen = parser.parse_args(arguments)
    model = AdapterModel.for_use(chosen.base, chosen.adapter, dtype=DTYPES[chosen.dtype])
    cases = islice(read_training_cases(chosen.cases), 0, None, chosen.every)
    profile = unscaled_profile(chosen.base)
    asked = list(
        ask(
            cases,
            profile,
            model,
            max_tokens=chosen.max_tokens,
            num_updates=chosen.updates,
            num_terse=chosen.num_terse,
        )
    )
    found = calibrate(asked)
    choices = [choice for one in asked for choice in one]
    write_calibration(
        chosen.adapter,
        msgspec.structs.replace(
            found,
            max_outside_mass=chosen.max_outside_mass,
            weights_sha256=file_sha256(chosen.adapter / WEIGHTS_NAME),
            dtype=chosen.dtype,
        ),
    )
    report = {
        "edits": len(asked),
        "edits_with_a_choice": sum(map(bool, asked)),
        "choices": len(choices),
        "surprise": {
            f"{scale:g}": round(min(surprise(choices, scale, one) for one in TEMPERATURES), 4)
            for scale in PRIOR_SCALES
        },
        "surprise_of_weights_alone": round(
            min(surprise(choices, 1e6, one) for one in TEMPERATURES), 4
        ),
        "prior_scale": found.prior_scale,
        "temperature": found.temperature,
        "min_confidence": found.min_confidence,
    }
    print(json.dumps(report, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
