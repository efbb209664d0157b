"""A model as GGUF: read back, it is the same model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForCausalLM

from benchmarks.speed.gguf_export import GgufExportError, cached_gguf, export_gguf


def change_config(source: Path, folder: Path, **changes: object) -> Path:
    """A copy of a model with other settings."""
    shutil.copytree(source, folder)
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return folder


def test_transformers_reads_back_what_was_written(tiny_model_dir: Path, tmp_path: Path) -> None:
    export_gguf(tiny_model_dir, tmp_path / "model.gguf", dtype="F32")
    original = AutoModelForCausalLM.from_pretrained(tiny_model_dir, dtype=torch.float32)
    config = AutoConfig.from_pretrained(tmp_path, gguf_file="model.gguf")
    for name in ("hidden_size", "num_attention_heads", "num_key_value_heads", "vocab_size"):
        assert getattr(config, name) == getattr(original.config, name)
    read = AutoModelForCausalLM.from_pretrained(
        tmp_path, gguf_file="model.gguf", dtype=torch.float32
    )
    assert read.state_dict().keys() == original.state_dict().keys()
    for name, weight in original.state_dict().items():
        assert torch.equal(read.state_dict()[name], weight), name
    token_ids = torch.arange(3, 40)[None]
    with torch.inference_mode():
        torch.testing.assert_close(read(token_ids).logits, original(token_ids).logits)


def test_matrices_that_divide_into_blocks_are_quantised(
    tiny_model_dir: Path, tmp_path: Path
) -> None:
    export_gguf(tiny_model_dir, tmp_path / "model.gguf", dtype="Q8_0")
    weights = load_file(tiny_model_dir / "model.safetensors")
    tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(tmp_path / "model.gguf").tensors}
    assert len(tensors) == len(weights)
    down = tensors["blk.1.ffn_down.weight"]  # 64 columns: two blocks
    assert down.tensor_type == gguf.GGMLQuantizationType.Q8_0
    expected = weights["model.layers.1.mlp.down_proj.weight"].numpy()
    read = gguf.quants.dequantize(down.data, down.tensor_type)
    assert np.abs(read - expected).max() <= np.abs(expected).max() / 254 * 1.01
    # 48 columns are one block and a half, and a norm is no matrix.
    for name in ("blk.0.attn_q.weight", "token_embd.weight", "output_norm.weight"):
        assert tensors[name].tensor_type == gguf.GGMLQuantizationType.F32


def test_the_cached_file_is_written_once_and_replaced_for_other_weights(
    tiny_model_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APPLY_SERVICE_CACHE", str(tmp_path / "cache"))
    other_dir = change_config(tiny_model_dir, tmp_path / "other", rope_theta=500.0)
    reports: list[str] = []
    first = cached_gguf(tiny_model_dir, "F32", report=reports.append)
    assert cached_gguf(tiny_model_dir, "F32", report=reports.append) == first
    assert len(reports) == 1
    second = cached_gguf(tiny_model_dir, "Q8_0", report=reports.append)
    assert first.is_file()
    assert second.is_file()
    assert len(reports) == 2
    other = cached_gguf(other_dir, "F32", report=reports.append)
    assert list(other.parent.glob("*.gguf")) == [other], "those of one model alone are kept"
    assert len(reports) == 5


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"architectures": ["Qwen2ForCausalLM"]}, "is a Qwen2ForCausalLM"),
        ({"attention_bias": True}, "attention_bias"),
        ({"rope_parameters": {"rope_type": "llama3", "rope_theta": 1.0}}, "rope_type llama3"),
        ({"rope_parameters": None, "rope_scaling": {"type": "linear"}}, "rope_type linear"),
    ],
)
def test_what_has_no_place_in_the_file_is_refused(
    tiny_model_dir: Path, tmp_path: Path, changes: dict[str, object], reason: str
) -> None:
    model_dir = change_config(tiny_model_dir, tmp_path / "model", **changes)
    with pytest.raises(GgufExportError, match=reason):
        export_gguf(model_dir, tmp_path / "model.gguf", dtype="F32")
    assert list(tmp_path.glob("*.gguf*")) == []


def test_a_folder_without_a_whole_model_is_said(tiny_model_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(GgufExportError, match="cannot be read as a model"):
        export_gguf(tmp_path / "empty", tmp_path / "model.gguf", dtype="F32")
    damaged = change_config(tiny_model_dir, tmp_path / "damaged")
    (damaged / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(GgufExportError, match="cannot be read as a model"):
        export_gguf(damaged, tmp_path / "model.gguf", dtype="F32")
    (damaged / "model.safetensors").unlink()
    with pytest.raises(GgufExportError, match="no \\*\\.safetensors"):
        export_gguf(damaged, tmp_path / "model.gguf", dtype="F32")
