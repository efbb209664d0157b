"""How far a model can be believed: scale, thresholds and the file beside the weights."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from training_case import training_case

from apply_service.models.adapter import find_adapter
from apply_service.models.manifest import AdapterMismatchError, file_sha256
from apply_service.prompts.calibration import read_calibration
from training.adapter_model import WEIGHTS_NAME, AdapterModel
from training.calibrate import (
    PRIOR_SCALES,
    THRESHOLDS,
    AskedChoice,
    JudgedAnswer,
    ask,
    calibrate,
    judge_answer,
    least_confidence,
    main,
    reliability,
    surprise,
)
from training.case_file import read_training_cases, write_cases
from training.served import unscaled_profile

pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")

BASE_SHA256 = "b" * 64


def normalised(scores: list[float]) -> list[float]:
    total = math.log(sum(map(math.exp, scores)))
    return [score - total for score in scores]


def drawn_choices(count: int, *, loudness: float) -> list[AskedChoice]:
    """Truths drawn from the sum of two log-odds, of which the model shouts one."""
    generator = random.Random(7)
    found = []
    for _ in range(count):
        weights = [generator.gauss(0, 2) for _ in range(3)]
        words = [generator.gauss(0, 1) for _ in range(3)]
        odds = [math.exp(sum(pair)) for pair in zip(weights, words, strict=True)]
        truth = generator.choices(range(3), odds)[0]
        log_probs = normalised([loudness * word for word in words])
        found.append(
            AskedChoice(tuple(log_probs), tuple(one - max(weights) for one in weights), truth)
        )
    return found


@pytest.mark.parametrize("loudness", [1.0, 4.0, 12.0])
def test_the_scale_is_how_loud_the_model_is(loudness: float) -> None:
    choices = drawn_choices(1500, loudness=loudness)
    found = calibrate([(choice,) for choice in choices])
    tied = PRIOR_SCALES.index(loudness)
    assert found.prior_scale in PRIOR_SCALES[tied : tied + 2]
    assert surprise(choices, loudness) < min(surprise(choices, 1e6), surprise(choices, 0.0))


@pytest.mark.parametrize("sureness", [0.8, 1.0, 1.5, 2.5])
def test_the_temperature_is_how_much_too_sure_both_are(sureness: float) -> None:
    """Weights and words that are all as many times too large as the temperature says."""
    choices = [
        replace(
            choice,
            log_probs=tuple(normalised([sureness * word for word in choice.log_probs])),
            weights=tuple(sureness * weight for weight in choice.weights),
        )
        for choice in drawn_choices(1500, loudness=1.0)
    ]
    found = calibrate([(choice,) for choice in choices])
    assert found.temperature == pytest.approx(sureness, abs=0.25)
    assert all(
        abs(one.mean_confidence - one.num_right / one.num_answers) < 0.06
        for one in found.reliability
        if one.num_answers > 200
    )


def test_confidence_is_the_least_up_to_the_first_wrong_choice() -> None:
    sure = AskedChoice((math.log(0.9), math.log(0.1)), (0.0, 0.0), 0)
    wrong = AskedChoice((math.log(0.2), math.log(0.8)), (0.0, 0.0), 0)
    unsure = AskedChoice((math.log(0.6), math.log(0.4)), (0.0, 0.0), 0)
    right = judge_answer([sure, unsure], 1.0)
    assert (right.is_right, right.confidence) == (True, pytest.approx(0.6))
    failed = judge_answer([sure, wrong, unsure], 1.0)
    assert (failed.is_right, failed.confidence) == (False, pytest.approx(0.8))


def test_the_threshold_leaves_hardly_a_wrong_answer_above_it() -> None:
    good = [JudgedAnswer(0.99, is_right=True)] * 150
    fair = [JudgedAnswer(0.955, is_right=True)] * 49 + [JudgedAnswer(0.955, is_right=False)]
    poor = [JudgedAnswer(0.93, is_right=True)] * 8 + [JudgedAnswer(0.93, is_right=False)] * 2
    assert least_confidence([*good, *fair, *poor]) == 0.935
    assert least_confidence([*good[:20], *fair, *poor]) == 0.96
    assert least_confidence([*good, *good, *good, *good, *fair, *poor]) == THRESHOLDS[0]
    assert least_confidence([JudgedAnswer(1.0, is_right=False)]) == 1.0


def test_reliability_counts_every_answer_once() -> None:
    answers = [JudgedAnswer(value, value > 0.7) for value in (0.4, 0.5, 0.79, 0.8, 0.99, 1.0, 1.0)]
    bins = list(reliability(answers))
    assert sum(one.num_answers for one in bins) == len(answers)
    assert sum(one.num_right for one in bins) == 5
    assert all(one.low <= one.mean_confidence <= one.high for one in bins)


def test_no_choice_is_no_calibration() -> None:
    with pytest.raises(ValueError, match="no question has a choice"):
        calibrate([])


def write_open_cases(path: Path) -> Path:
    """Updates with two places each, of which either is the truth."""
    lines = ["a = 1", "b = 1", "", "a = 1", "c = 1"]
    cases = []
    for number in range(10):
        after = 1 if number % 4 else 4
        expected = [*lines[:after], f"print(a, {number})", *lines[after:]]
        update = ["# ...", "a = 1", f"print(a, {number})", "# ..."]
        cases.append(training_case(lines, expected, update, name=f"open-{number}"))
    write_cases(path, cases)
    return path


def test_brief_updates_are_asked_about_too(tiny_model_dir: Path, tmp_path: Path) -> None:
    cases = list(read_training_cases(write_open_cases(tmp_path / "cases.jsonl")))
    model = AdapterModel(tiny_model_dir, rank=2, alpha=2, seed=0)
    asked = partial(ask, cases, unscaled_profile(tiny_model_dir), model, max_tokens=400)
    num_asked = len(list(asked(num_terse=0)))
    assert num_asked == len(cases)
    assert num_asked < len(list(asked(num_terse=2))) <= 3 * num_asked


def test_the_file_holds_for_its_weights_alone(
    tiny_model_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    adapter_dir = tmp_path / "adapter"
    adapter_dir.mkdir()
    AdapterModel(tiny_model_dir, rank=2, alpha=2, seed=0).save_adapter(
        adapter_dir, dtype=torch.float32
    )
    (adapter_dir / "apply_adapter.json").write_text(f'{{"base_model_sha256": "{BASE_SHA256}"}}')
    cases = write_open_cases(tmp_path / "cases.jsonl")
    before = find_adapter(adapter_dir, base_sha256=BASE_SHA256)
    options = ["--base", str(tiny_model_dir), "--adapter", str(adapter_dir), "--every", "2"]
    options += ["--max-outside-mass", "0.75"]
    assert main([*options, "--cases", str(cases)]) == 0
    assert '"choices"' in capsys.readouterr().out
    found = read_calibration(adapter_dir)
    assert found is not None
    assert found.prior_scale in PRIOR_SCALES
    assert found.max_outside_mass == 0.75
    assert found.weights_sha256 == file_sha256(adapter_dir / WEIGHTS_NAME)
    assert sum(one.num_answers for one in found.reliability) > 3
    calibrated = find_adapter(adapter_dir, base_sha256=BASE_SHA256)
    assert before is not None
    assert calibrated is not None
    assert before.sha256 != calibrated.sha256
    save_file({"other": torch.zeros(1)}, adapter_dir / WEIGHTS_NAME)
    with pytest.raises(AdapterMismatchError, match="make calibrate"):
        find_adapter(adapter_dir, base_sha256=BASE_SHA256)
    (adapter_dir / "calibration.json").write_text("{}garbage")
    with pytest.raises(AdapterMismatchError, match="cannot be read"):
        find_adapter(adapter_dir, base_sha256=BASE_SHA256)
