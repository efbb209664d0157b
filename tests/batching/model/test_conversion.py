"""Conversion keeps every weight, and merging an adapter is what peft itself would do."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from gguf_file import write_gguf
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from batching.errors import ModelLoadError
from batching.model.conversion import convert_gguf, merge_adapter

# peft asks transformers for a property under its old name.
pytestmark = pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing.:FutureWarning")


@pytest.fixture(scope="module")
def gguf_weights(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, np.ndarray]]:
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    return path, write_gguf(path)


@pytest.fixture(scope="module")
def base_dir(
    gguf_weights: tuple[Path, dict[str, np.ndarray]], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    folder = tmp_path_factory.mktemp("base")
    convert_gguf(gguf_weights[0], folder)
    return folder


def make_adapter(base_dir: Path, adapter_dir: Path, *, use_rslora: bool = False) -> None:
    """An adapter of random weights, half precision, as training writes it."""
    torch.manual_seed(3)
    base = AutoModelForCausalLM.from_pretrained(base_dir, dtype=torch.float32)
    settings = LoraConfig(
        r=4,
        lora_alpha=6,
        target_modules="all-linear",
        use_rslora=use_rslora,
        init_lora_weights=False,
        task_type="CAUSAL_LM",
    )
    get_peft_model(base, settings).half().save_pretrained(adapter_dir)


def test_converted_weights_are_those_of_the_file(
    gguf_weights: tuple[Path, dict[str, np.ndarray]], base_dir: Path
) -> None:
    weights = load_file(base_dir / "model.safetensors")
    source = gguf_weights[1]
    assert "lm_head.weight" not in weights
    assert all(weight.dtype == torch.float32 for weight in weights.values())
    for ours, theirs in {
        "model.embed_tokens.weight": "token_embd.weight",
        "model.layers.1.mlp.down_proj.weight": "blk.1.ffn_down.weight",
        "model.layers.0.self_attn.v_proj.weight": "blk.0.attn_v.weight",
    }.items():
        np.testing.assert_array_equal(weights[ours].numpy(), source[theirs])


def test_converted_folder_loads_as_a_plain_model(base_dir: Path) -> None:
    settings = json.loads((base_dir / "config.json").read_text(encoding="utf-8"))
    assert "quantization_config" not in settings
    model = AutoModelForCausalLM.from_pretrained(base_dir, dtype=torch.float32)
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert model(input_ids=torch.tensor([[1, 5, 9]])).logits.isfinite().all()


def test_damaged_gguf_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(b"GGUF" + bytes(60))
    with pytest.raises(ModelLoadError, match=r"bad\.gguf cannot be converted"):
        convert_gguf(path, tmp_path)


@pytest.mark.parametrize("use_rslora", [False, True])
def test_merge_agrees_with_peft(base_dir: Path, tmp_path: Path, use_rslora: bool) -> None:
    adapter_dir, merged_dir = tmp_path / "adapter", tmp_path / "merged"
    merged_dir.mkdir()
    make_adapter(base_dir, adapter_dir, use_rslora=use_rslora)
    merge_adapter(base_dir, adapter_dir, merged_dir)
    ours = load_file(merged_dir / "model.safetensors")
    base = AutoModelForCausalLM.from_pretrained(base_dir, dtype=torch.float32)
    adapted = PeftModel.from_pretrained(base, adapter_dir, autocast_adapter_dtype=True)
    theirs = adapted.merge_and_unload().state_dict()
    before = load_file(base_dir / "model.safetensors")
    for name, weight in ours.items():
        torch.testing.assert_close(weight, theirs[name], atol=1e-6, rtol=1e-6)
        if "proj" in name:
            assert not torch.equal(weight, before[name])
    assert (merged_dir / "tokenizer.json").read_bytes() == (
        base_dir / "tokenizer.json"
    ).read_bytes()


def test_shards_are_one_adapter(base_dir: Path, tmp_path: Path) -> None:
    adapter_dir = tmp_path / "adapter"
    make_adapter(base_dir, adapter_dir)
    whole_dir, sharded_dir = tmp_path / "whole", tmp_path / "sharded"
    whole_dir.mkdir()
    sharded_dir.mkdir()
    merge_adapter(base_dir, adapter_dir, whole_dir)
    path = adapter_dir / "adapter_model.safetensors"
    weights = load_file(path)
    path.unlink()
    names = sorted(weights)
    for number, part in enumerate((names[::2], names[1::2]), start=1):
        shard = adapter_dir / f"adapter_model-{number:05}-of-00002.safetensors"
        save_file({name: weights[name] for name in part}, shard)
    merge_adapter(base_dir, adapter_dir, sharded_dir)
    assert (sharded_dir / "model.safetensors").read_bytes() == (
        whole_dir / "model.safetensors"
    ).read_bytes()


def test_adapters_that_do_not_fit_are_refused(base_dir: Path, tmp_path: Path) -> None:
    adapter_dir = tmp_path / "adapter"
    make_adapter(base_dir, adapter_dir)
    path = adapter_dir / "adapter_model.safetensors"
    weights = load_file(path)
    name = next(iter(sorted(weights)))
    save_file({**weights, name: weights[name][:, :3].contiguous()}, path)
    with pytest.raises(ModelLoadError, match="shapes"):
        merge_adapter(base_dir, adapter_dir, tmp_path)
    save_file({key: value for key, value in weights.items() if key != name}, path)
    with pytest.raises(ModelLoadError, match="incomplete"):
        merge_adapter(base_dir, adapter_dir, tmp_path)
    settings_path = adapter_dir / "adapter_config.json"
    settings = json.loads(settings_path.read_text(encoding="utf-8"))
    settings_path.write_text(json.dumps({**settings, "use_dora": True}), encoding="utf-8")
    with pytest.raises(ModelLoadError, match="use_dora"):
        merge_adapter(base_dir, adapter_dir, tmp_path)
