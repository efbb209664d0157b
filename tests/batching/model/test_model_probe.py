"""Families that the engine computes as transformers does are taken, others refused with figures."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from tiny_model import write_tiny_model

from batching.config import EngineConfig
from batching.errors import ModelLoadError
from batching.model import runner as runner_module
from batching.model.loading import load_model
from batching.model.model_probe import probe_model
from batching.model.runner import ModelRunner
from kernels.instruction_set import has_bfloat16
from kernels.ops import reference_ops, select_ops

CPU = torch.device("cpu")
SIZES: dict[str, Any] = {
    "vocab_size": 300,
    "hidden_size": 48,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "initializer_range": 0.2,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
SERVED: dict[str, dict[str, Any]] = {
    "Llama": {},
    "Mistral": {"sliding_window": None},
    "Qwen2": {},
    "Qwen3": {"head_dim": 8},
    "Gemma": {"head_dim": 8},
    "Phi3": {},
    "Olmo2": {},
    "Granite": {},
    "Starcoder2": {"sliding_window": None},
    "SmolLM3": {},
    "Helium": {"head_dim": 8},
}
SINKS: dict[str, Any] = {
    "head_dim": 8,
    "num_local_experts": 2,
    "num_experts_per_tok": 1,
    "layer_types": ["full_attention"] * 2,
    "sliding_window": 128,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e4},
}


def write_model(folder: Path, family: str, changes: dict[str, Any]) -> Path:
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**{**SIZES, **changes})
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    return folder


def probe(folder: Path, dtype: Any = "float32", ops: Any = None) -> None:
    trial = partial(
        probe_model, dtype=getattr(torch, dtype), ops=ops or select_ops(torch.device("cpu"))
    )
    load_model(folder, dtype=dtype, device=CPU, probe=trial)


@pytest.mark.parametrize("family", SERVED)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_families_whose_numbers_are_the_same_are_taken(
    tmp_path: Path, family: str, dtype: str
) -> None:
    if dtype == "bfloat16" and not has_bfloat16():
        pytest.skip("the processor has no bfloat16")
    probe(write_model(tmp_path, family, SERVED[family]), dtype)


def test_the_reference_operations_are_tried_too(tmp_path: Path) -> None:
    probe(write_model(tmp_path, "Llama", {}), ops=reference_ops())


@pytest.mark.parametrize(
    ("family", "changes", "reason"),
    [
        ("DiffLlama", {}, r"diffllama: layer 0 differs from transformers by \d"),
        ("GptOss", SINKS, r"gpt_oss: layer 0 differs from transformers by \d"),
        ("StableLm", {}, "stablelm could not be tried"),
    ],
)
def test_families_whose_attention_is_another_are_refused_with_the_figure(
    tmp_path: Path, family: str, changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ModelLoadError, match=reason):
        probe(write_model(tmp_path, family, changes))


def test_a_family_that_goes_past_the_cache_is_refused(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = transformers.XGLMConfig(
        vocab_size=300,
        d_model=48,
        ffn_dim=64,
        num_layers=2,
        attention_heads=6,
        max_position_embeddings=512,
    )
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path)
    with pytest.raises(ModelLoadError, match="xglm: layer 0 computes its attention without"):
        probe(tmp_path)


def test_weights_without_numbers_are_refused(tmp_path: Path) -> None:
    write_tiny_model(tmp_path, seed=0)
    weights = load_file(tmp_path / "model.safetensors")
    weights["model.layers.1.mlp.up_proj.weight"][3, 4] = torch.nan
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelLoadError, match="layer 1 has NaN or infinity already"):
        ModelRunner(EngineConfig(model_path=tmp_path))


def test_a_model_is_tried_once_on_a_machine(
    tiny_model_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[bool] = []
    monkeypatch.setattr(runner_module, "probe_model", lambda *_, **__: tried.append(True))
    for folder in (tmp_path, tmp_path, None, None):
        ModelRunner(EngineConfig(model_path=tiny_model_dir, step_cost_dir=folder))
    assert len(tried) == 3
