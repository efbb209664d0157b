"""Every rank's part of every weight, and models that cannot be shared."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_model import write_tiny_model
from torch import Tensor, nn

from batching.config import EngineConfig
from batching.errors import ModelLoadError
from batching.model.parallel.loading import ModelSlices, load_slices, read_divided_config
from batching.model.parallel.rank_group import RankGroup
from batching.model.parallel.runner import start_ranks
from batching.model.parallel.split import Split, check_divides

HEADS = {"heads": 9, "KV heads": 3, "MLP columns": 1536}
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("eight-heads")
    write_tiny_model(path, seed=0, num_heads=8, num_kv_heads=4)
    return path


def load(path: Path, rank: int, size: int) -> ModelSlices:
    """A rank's part; nothing is exchanged while it is loaded."""
    group = cast(RankGroup, SimpleNamespace(rank=rank, size=size, is_lead=rank == 0))
    return load_slices(path, dtype="float32", device=CPU, group=group)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("total", [7, 8, 259, 49152])
def test_parts_are_everything_once_and_nearly_equal(total: int, size: int) -> None:
    parts = [Split(rank, size).part(total) for rank in range(size)]
    assert [one for part in parts for one in range(total)[part]] == list(range(total))
    lengths = {len(range(total)[part]) for part in parts}
    assert max(lengths) - min(lengths) <= 1


def test_what_does_not_divide_is_refused_with_the_arithmetic() -> None:
    check_divides(HEADS, 3)
    with pytest.raises(
        ModelLoadError,
        match=r"2 ranks .*: 9 heads = 2 × 4 \+ 1, 3 KV heads = 2 × 1 \+ 1; take 3 ranks",
    ):
        check_divides(HEADS, 2)
    with pytest.raises(ModelLoadError, match="5 KV heads = 2 × 2 \\+ 1; take one process"):
        check_divides({"heads": 24, "KV heads": 5}, 2)


def test_two_ranks_of_three_kv_heads_are_refused_before_a_process_starts(tmp_path: Path) -> None:
    write_tiny_model(tmp_path, seed=0, num_heads=9, num_kv_heads=3)
    with pytest.raises(ModelLoadError, match="9 heads = 2 × 4"):
        start_ranks(EngineConfig(model_path=tmp_path, tensor_parallel=2))


def test_int8_is_refused(model_dir: Path) -> None:
    with pytest.raises(ModelLoadError, match="int8 cannot be split over 2 ranks"):
        read_divided_config(model_dir, dtype="int8", num_ranks=2)


@pytest.mark.parametrize("size", [2, 4])
def test_the_slices_of_all_ranks_are_the_whole(model_dir: Path, size: int) -> None:
    whole = load_file(model_dir / "model.safetensors")
    parts = [load(model_dir, rank, size) for rank in range(size)]
    for name, weight in whole.items():
        axis = 1 if name.split(".")[-2] in ("o_proj", "down_proj") else 0
        own = [find_weight(part.model, name) for part in parts]
        if "norm" in name:
            assert all(torch.equal(one, weight) for one in own)
        else:
            assert torch.equal(torch.cat(own, dim=axis), weight), name
    split = sum(one.numel() for name, one in whole.items() if "norm" not in name)
    replicated = sum(one.numel() for name, one in whole.items() if "norm" in name)
    assert parts[0].num_parameters == split + replicated
    assert sum(part.num_bytes for part in parts) == 4 * (split + size * replicated)
    assert parts[0].shape.num_kv_heads == 4 // size


def find_weight(model: nn.Module, name: str) -> Tensor:
    """A weight as it was stored, wherever a rank has it."""
    module = name.removesuffix(".weight")
    found: Any = model.get_submodule(module)
    weight = cast(Tensor, getattr(found, "linear", found).weight)
    return weight.to_dense() if weight.is_mkldnn else weight.detach()


def test_a_checkpoint_in_several_files_is_read_by_its_index(
    model_dir: Path, tmp_path: Path
) -> None:
    weights = load_file(model_dir / "model.safetensors")
    (tmp_path / "config.json").write_text((model_dir / "config.json").read_text())
    names = sorted(weights)
    files = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, own in files.items():
        save_file({name: weights[name] for name in own}, tmp_path / file)
    index = {name: file for file, own in files.items() for name in own}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    expected, read = load(model_dir, 1, 2), load(tmp_path, 1, 2)
    for name in weights:
        assert torch.equal(find_weight(read.model, name), find_weight(expected.model, name))


def test_missing_and_misfit_weights_are_clear_errors(model_dir: Path, tmp_path: Path) -> None:
    weights = load_file(model_dir / "model.safetensors")
    (tmp_path / "config.json").write_text((model_dir / "config.json").read_text())
    name = "model.layers.1.self_attn.q_proj.weight"
    save_file({**weights, name: weights[name][:-8].clone()}, tmp_path / "model.safetensors")
    with pytest.raises(ModelLoadError, match=r"q_proj.weight has a slice of shape \[28, 64\]"):
        load(tmp_path, 0, 2)
    del weights[name]
    save_file(weights, tmp_path / "model.safetensors")
    with pytest.raises(
        ModelLoadError, match=r"lacks 1 weights, model\.layers\.1\.self_attn\.q_proj"
    ):
        load(tmp_path, 0, 2)
