"""Weights that are stored in fewer bits: what is served, what is refused, and with which words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from fp8_model import write_fp8_model
from torch import nn

from apply_service.models.info import model_info
from apply_service.models.store import open_store
from batching.config import Device, Dtype, EngineConfig
from batching.errors import ModelLoadError
from batching.model.fused_layers import FusedDecoderLayer, SideBySide, fuse_decoder
from batching.model.loading import load_model
from batching.model.random_model import make_random_model
from batching.model.runner import ModelRunner
from batching.model.weight_format import WeightFormat
from kernels.instruction_set import has_bfloat16
from kernels.ops import reference_ops

CPU = torch.device("cpu")
W4 = {"group_0": {"weights": {"num_bits": 4, "type": "int"}}}
W8 = {"group_0": {"weights": {"num_bits": 8, "type": "float"}}}


@pytest.mark.parametrize(
    ("stored", "name"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "bitsandbytes int4"),
        ({"load_in_8bit": True}, "bitsandbytes int8"),
        ({"quant_method": "compressed-tensors", "config_groups": W4}, "compressed-tensors int4"),
        ({"quant_method": "compressed-tensors", "config_groups": W8}, "compressed-tensors float8"),
        ({"quant_method": "torchao"}, "torchao"),
        ({"quant_method": "gptq", "bits": 4}, "gptq int4"),
        ({}, "None"),
    ],
)
def test_a_format_has_a_name(stored: dict[str, Any], name: str) -> None:
    assert str(WeightFormat.read({"quantization_config": stored})) == name


@pytest.mark.parametrize("settings", [{}, {"quantization_config": None}])
def test_plain_weights_have_no_format(settings: dict[str, Any]) -> None:
    assert WeightFormat.read(settings) is None


@pytest.mark.parametrize(
    ("method", "dtype", "device", "message"),
    [
        ("gptq", "bfloat16", "cuda", r"gptq cannot be served, weights by bitsandbytes"),
        ("fp8", "int8", "cpu", "are fp8 already"),
        ("bitsandbytes", "float32", "cpu", "computed on cuda alone, and the device is cpu"),
        ("torchao", "bfloat16", "cuda", "need the package torchao.*pip install torchao"),
        ("compressed-tensors", "float32", "cpu", "pip install compressed-tensors"),
    ],
)
def test_what_cannot_be_served_is_refused_with_a_remedy(
    method: str, dtype: Dtype, device: Device, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("batching.model.weight_format.find_spec", lambda _name: None)
    with pytest.raises(ModelLoadError, match=message):
        WeightFormat(method, None).check(dtype=dtype, device=device)


def test_a_refusal_comes_before_any_weight_is_read(tiny_model_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "quantised"
    write_fp8_model(tiny_model_dir, path)
    settings = json.loads((path / "config.json").read_text())
    settings["quantization_config"] = {"quant_method": "aqlm"}
    (path / "config.json").write_text(json.dumps(settings))
    (path / "model.safetensors").unlink()
    with pytest.raises(ModelLoadError, match="quantised by aqlm cannot be served"):
        load_model(path, dtype="float32", device=CPU)


def test_fp8_is_served_on_the_cpu_from_plain_weights(
    tiny_model_dir: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "fp8"
    write_fp8_model(tiny_model_dir, path)
    dtype: Dtype = "bfloat16" if has_bfloat16() else "float32"
    plain, _ = load_model(tiny_model_dir, dtype=dtype, device=CPU)
    model, _ = load_model(path, dtype=dtype, device=CPU)
    expected = plain.model.layers[0].mlp.up_proj.weight.detach().to_dense()
    stored = model.model.layers[0].mlp.up_proj.weight.detach().to_dense()
    assert stored.dtype == getattr(torch, dtype)
    # Three bits behind the point; a scale that was left out would be far off.
    assert float((stored - expected).abs().max()) < 0.07 * float(expected.abs().max())
    runner = ModelRunner(EngineConfig(model_path=path, kv_memory_bytes=1 << 20))
    runner.warm_up()
    assert runner.model_info.dtype == "float32"
    assert capfd.readouterr().err == "", "plain weights were asked for and not fallen back to"


def test_model_info_says_the_format(
    tiny_model_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "fp8"
    write_fp8_model(tiny_model_dir, path)
    monkeypatch.setenv("APPLY_SERVICE_CACHE", str(tmp_path / "cache"))
    store = open_store()
    assert model_info(store.resolve(str(path))).weights == "fp8"
    assert model_info(store.resolve(str(tiny_model_dir))).weights == "float32"


class QuantisedLinear(nn.Module):
    """Stands for a layer of another format: no weight that could be packed."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.compute = linear.forward

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.compute(rows)


def test_fused_layers_leave_other_formats_alone() -> None:
    model = make_random_model("tiny", dtype="float32", device=CPU).model
    theirs = []
    for layer in model.model.layers:
        for part in (layer.self_attn, layer.mlp):
            for name, linear in list(part.named_children()):
                if isinstance(linear, nn.Linear):
                    theirs.append(QuantisedLinear(linear))
                    setattr(part, name, theirs[-1])
    fused = reference_ops().fused
    assert fused is not None
    assert fuse_decoder(model, fused)
    kept = {id(module) for module in model.modules() if isinstance(module, QuantisedLinear)}
    assert kept == {id(module) for module in theirs}
    for layer in model.model.layers:
        assert isinstance(layer, FusedDecoderLayer)
        assert isinstance(layer.qkv_proj, SideBySide)
        assert isinstance(layer.gate_up_proj, SideBySide)
