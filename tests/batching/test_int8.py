"""A quantised model in the engine: another identity, less memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from batching.cache.kv_namespace import kv_namespace
from batching.config import EngineConfig
from batching.errors import ModelLoadError
from batching.model.loading import load_model
from batching.model.runner import ModelRunner
from kernels.int8_linear import Int8Linear

NUM_REQUESTS = 24
ANSWER_LEN = 30


def make_config(model_dir: Path) -> EngineConfig:
    return EngineConfig(model_path=model_dir, dtype="int8", kv_memory_bytes=8 << 20)


def test_quantised_a_model_is_another_one(tiny_model_dir: Path) -> None:
    exact = ModelRunner(replace(make_config(tiny_model_dir), dtype="float32")).model_info
    quantised = ModelRunner(make_config(tiny_model_dir)).model_info
    assert quantised.fingerprint != exact.fingerprint
    assert quantised.num_parameters == exact.num_parameters
    assert quantised.kv_bytes_per_token == exact.kv_bytes_per_token
    names = {
        kv_namespace(
            tiny_model_dir,
            dtype=dtype,
            device="cpu",
            computed_by={"torch": "2"},
            block_size=16,
            chunk_tokens=64,
            payload="exact",
        )
        for dtype in ("float32", "int8")
    }
    assert len(names) == 2


def test_no_linear_weights_stay_in_float32(tiny_model_dir: Path) -> None:
    model, _ = load_model(tiny_model_dir, dtype="int8", device=torch.device("cpu"))
    assert not [one for one in model.modules() if type(one) is torch.nn.Linear]
    assert sum(isinstance(one, Int8Linear) for one in model.modules()) > 7
    large = [name for name, parameter in model.named_parameters() if parameter.dim() > 1]
    assert large == ["model.embed_tokens.weight"]


def test_a_gpu_is_refused(tiny_model_dir: Path) -> None:
    with pytest.raises(ModelLoadError, match=r"int8 .* CPU, .* cuda; choose bfloat16"):
        load_model(tiny_model_dir, dtype="int8", device=torch.device("cuda"))
