"""A tiny model with weights in fp8 in the published form: numbers, and a scale for each block."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

_BLOCK = 16
_LARGEST = 448.0  # of what float8_e4m3fn can hold


def write_fp8_model(source: Path, path: Path) -> None:
    """Store a model's linear layers in fp8 in the new folder `path`; all else stays as it is."""
    shutil.copytree(source, path)
    stored: dict[str, torch.Tensor] = {}
    for name, weight in load_file(source / "model.safetensors").items():
        if not name.endswith("proj.weight"):
            stored[name] = weight
            continue
        rows, columns = weight.shape
        blocks = weight.view(rows // _BLOCK, _BLOCK, columns // _BLOCK, _BLOCK)
        scales = blocks.abs().amax(dim=(1, 3)) / _LARGEST
        scaled = (blocks / scales[:, None, :, None]).view(rows, columns)
        stored[name] = scaled.to(torch.float8_e4m3fn)
        stored[f"{name}_scale_inv"] = scales
    save_file(stored, path / "model.safetensors", metadata={"format": "pt"})
    settings = json.loads((path / "config.json").read_text())
    settings["quantization_config"] = {
        "quant_method": "fp8",
        "activation_scheme": "dynamic",
        "weight_block_size": [_BLOCK, _BLOCK],
        "modules_to_not_convert": ["lm_head"],
    }
    (path / "config.json").write_text(json.dumps(settings))
