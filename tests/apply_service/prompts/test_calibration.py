"""A profile takes what was measured with its model, and the service acts on it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from apply_service.prompts.calibration import Calibration, read_calibration, write_calibration
from apply_service.prompts.embedded import WEAK_MODEL, EmbeddedProfile
from apply_service.prompts.errors import CalibrationError
from apply_service.prompts.profile import PromptRequest


@pytest.fixture
def model_dir(tiny_model_dir: Path, tmp_path: Path) -> Path:
    """A tokenizer that a calibration can stand beside."""
    return Path(shutil.copytree(tiny_model_dir, tmp_path / "model"))


def calibration_of(model_dir: Path) -> Calibration:
    profile = EmbeddedProfile.from_dir(model_dir)
    form = profile.build(
        PromptRequest(original_lines=["a"], update_lines=["b"], segments=[])
    ).merge_form
    assert form is not None
    return form.calibration


def test_the_calibration_beside_the_model_is_taken(model_dir: Path) -> None:
    assert calibration_of(model_dir) == WEAK_MODEL
    measured = Calibration(prior_scale=3.0, min_confidence=0.95, dtype="float32")
    write_calibration(model_dir, measured)
    assert read_calibration(model_dir) == measured
    assert calibration_of(model_dir) == measured


@pytest.mark.parametrize(
    "content",
    ["", "{}x", '{"prior_scale": -1}', '{"temperature": 0}', '{"min_confidence": 2}'],
)
def test_a_damaged_calibration_is_not_passed_over(model_dir: Path, content: str) -> None:
    (model_dir / "calibration.json").write_text(content)
    with pytest.raises(CalibrationError, match="make calibrate"):
        EmbeddedProfile.from_dir(model_dir)
