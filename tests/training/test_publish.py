from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from apply_service.models.manifest import file_sha256
from training.adapter_model import AdapterModel
from training.example import Example
from training.publish import BASE_MODEL_SHA256, main, mean_weights, start_of

pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")
REPORT = {
    "exact": 0.8,
    "num_exact": 8,
    "n": 10,
    "wilson_95": [0.49, 0.9433],
    "loss_per_token": 0.0123,
    "answer_tokens": 100,
    "wrong_tokens": {"one": 2},
}
SHARE = {"exact": 0.75, "num_exact": 3, "n": 4, "wilson_95": [0.3, 0.9544]}
DECISIONS = {
    "first_guess": SHARE,
    "summed": SHARE | {"num_exact": 4, "exact": 1.0},
    "served": SHARE,
    "summed_where_first_guess_is_wrong": SHARE,
}
START: dict[str, Any] = {
    "generator_version": 7,
    "examples": 1200,
    "examples_with_choice": 300,
    "tokens": 5,
    "start_sha256": None,
    "settings": {
        "start": None,
        "loss": "weighted",
        "choice_share": 0.625,
        "examples_per_step": 8,
        "learning_rate": 0.001,
        "max_tokens": 900,
        "device": "cpu",
    },
}


def test_a_published_adapter_names_its_base_and_computes_the_same(
    tiny_model_dir: Path, tmp_path: Path
) -> None:
    checkpoint, out = tmp_path / "ckpt", tmp_path / "published"
    model = AdapterModel(tiny_model_dir, rank=4, alpha=8, seed=0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter).half().float() * 0.125)
    model.save_adapter(checkpoint, dtype=torch.float32)
    log, report = tmp_path / "log.jsonl", tmp_path / "report.json"
    log.write_text(json.dumps(START) + '\n{"step": 5, "loss": 0.1, "elapsed_s": 90.0}\n')
    report.write_text(json.dumps(dict.fromkeys(("windows", "served", "short_edits"), REPORT)))
    (tmp_path / "decisions.json").write_text(json.dumps(DECISIONS))
    arguments = ["--checkpoint", checkpoint, "--log", log, "--report", report, "--out", out]
    arguments += ["--decisions", tmp_path / "decisions.json"]
    assert main([str(argument) for argument in arguments]) == 0

    record = json.loads((out / "apply_adapter.json").read_text())
    assert record["base_model_sha256"] == BASE_MODEL_SHA256
    assert record["recipe"]["steps"] == 5
    assert record["recipe"]["minutes"] == 1.5
    assert record["recipe"]["generator_version"] == 7
    assert "wrong_tokens" not in record["figures"]["windows"]
    weights = load_file(out / "adapter_model.safetensors")
    assert {weight.dtype for weight in weights.values()} == {torch.float16}
    card = (out / "README.md").read_text()
    assert "8 of 10 (80%) | 49% to 94%" in card
    assert "4 of 4 (100%) | 30% to 95%" in card
    assert "It started from zero." in card
    assert BASE_MODEL_SHA256 in card

    example = Example("", "", (1, 2, 3), (4, 5))
    published = AdapterModel.for_use(tiny_model_dir, out, dtype=torch.float32)
    assert torch.allclose(published.answer_logits(example), model.answer_logits(example))

    again = tmp_path / "again"
    entry = START | {
        "start_sha256": file_sha256(out / "adapter_model.safetensors"),
        "settings": START["settings"] | {"start": str(out)},
    }
    log.write_text(log.read_text().replace(json.dumps(START), json.dumps(entry)))
    arguments[arguments.index(out)] = again
    assert main([str(argument) for argument in arguments]) == 0
    previous = json.loads((again / "apply_adapter.json").read_text())["recipe"]["previous"]
    assert previous["steps"] == 5
    assert len(previous["weights_sha256"]) == 64
    assert "earlier adapter (5 steps of 8 in 1.5 minutes" in (again / "README.md").read_text()

    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    model.save_adapter(checkpoint, dtype=torch.float32)
    mean = tmp_path / "mean"
    arguments[arguments.index(again)] = mean
    assert main([*map(str, arguments), "--start-share", "0.25"]) == 0
    for name, weight in load_file(mean / "adapter_model.safetensors").items():
        assert torch.allclose(weight, weights[name] * 0.25)
    assert json.loads((mean / "apply_adapter.json").read_text())["recipe"]["start_share"] == 0.25
    assert "What is published has\n25% of the weights" in (mean / "README.md").read_text()

    checkpoints = [str(tmp_path / "earlier"), str(checkpoint)]
    copytree(out, checkpoints[0])
    averaged = tmp_path / "averaged"
    arguments[arguments.index(mean)] = averaged
    arguments[1:2] = checkpoints
    assert main([*map(str, arguments), "--start-share", "0.5"]) == 0
    for name, weight in load_file(averaged / "adapter_model.safetensors").items():
        assert torch.allclose(weight, weights[name] * 0.75)
    assert "2 checkpoints\nof the run have equal parts" in (averaged / "README.md").read_text()

    model.save_adapter(out, dtype=torch.float32)
    with pytest.raises(ValueError, match=f"{out}: the run started from weights with SHA-256"):
        main([*map(str, arguments), "--start-share", "0.25"])


@pytest.mark.parametrize("share", [0.5, 1.5])
def test_a_share_of_nothing_is_refused(share: float, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--start-share"):
        mean_weights([tmp_path], None, share)


def test_a_log_without_the_hash_of_its_start_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps({key: START[key] for key in START if key != "start_sha256"}))
    with pytest.raises(ValueError, match=r"log\.jsonl: does not say which weights"):
        start_of(log)
