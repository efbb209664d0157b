"""Which models are taken, which are refused and why, and how models are told apart."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_model import write_tiny_model
from transformers import GemmaConfig, LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config, T5Config

from batching.config import EngineConfig, resolve_num_blocks
from batching.errors import ModelLoadError
from batching.fingerprint import fingerprint_model
from batching.model.loading import check_is_supported, load_model
from batching.model.runner import ModelRunner


@pytest.mark.parametrize("config_class", [LlamaConfig, Qwen2Config, Qwen3Config, GemmaConfig])
def test_families_with_full_attention_are_taken(config_class: type) -> None:
    check_is_supported(config_class())


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (T5Config(), "encoder"),
        (MistralConfig(sliding_window=4096), "sliding window of 4096"),
        (Qwen2Config(use_sliding_window=True, max_window_layers=1), "sliding_attention"),
        (
            LlamaConfig(rope_parameters={"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}),
            "dynamic rotary",
        ),
    ],
)
def test_families_that_cannot_be_rolled_back_are_refused(config: object, reason: str) -> None:
    with pytest.raises(ModelLoadError, match=reason):
        check_is_supported(config)


def test_settings_that_change_the_numbers_are_refused() -> None:
    config = LlamaConfig()
    config.final_logit_softcapping = 30.0
    with pytest.raises(ModelLoadError, match="final_logit_softcapping"):
        check_is_supported(config)


def test_an_empty_folder_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match=r"config\.json"):
        load_model(tmp_path, dtype="float32", device=torch.device("cpu"))


def test_damaged_weights_are_a_clear_error(tiny_model_dir: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(tiny_model_dir, damaged)
    (damaged / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(ModelLoadError, match="damaged could not be loaded"):
        load_model(damaged, dtype="float32", device=torch.device("cpu"))


def test_missing_weights_are_not_replaced_by_random_ones(
    tiny_model_dir: Path, tmp_path: Path
) -> None:
    incomplete = tmp_path / "incomplete"
    shutil.copytree(tiny_model_dir, incomplete)
    weights = load_file(incomplete / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, incomplete / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelLoadError, match=r"lacks 1 weights, model\.layers\.1\.mlp"):
        load_model(incomplete, dtype="float32", device=torch.device("cpu"))


def test_the_fingerprint_follows_the_weights(tiny_model_dir: Path, tmp_path: Path) -> None:
    same, other = tmp_path / "same", tmp_path / "other"
    shutil.copytree(tiny_model_dir, same)
    other.mkdir()
    write_tiny_model(other, seed=1)
    assert fingerprint_model(same) == fingerprint_model(tiny_model_dir)
    assert fingerprint_model(other) != fingerprint_model(tiny_model_dir)


def test_the_kv_pool_is_as_large_as_said(tiny_model_dir: Path) -> None:
    runner = ModelRunner(EngineConfig(model_path=tiny_model_dir, kv_memory_bytes=1 << 20))
    info = runner.model_info
    assert info.kv_bytes_per_token == 2 * 2 * 2 * 8 * 4  # K and V, layers, heads, head_dim, bytes
    assert info.num_kv_tokens == (1 << 20) // info.kv_bytes_per_token
    with pytest.raises(ModelLoadError, match="1000 bytes holds no block"):
        resolve_num_blocks(1000, kv_bytes_per_token=256, block_size=16)
