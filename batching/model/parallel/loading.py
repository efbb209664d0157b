"""Reads one rank's part of a model; the rest of the files is not read."""

from __future__ import annotations

import json
from collections import defaultdict
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM

from batching.config import Dtype
from batching.errors import ModelLoadError
from batching.model.fused_layers import KNOWN_LAYERS
from batching.model.loading import (
    ATTENTION_NAME,
    ModelShape,
    check_is_supported,
    read_shape,
    read_weight_format,
    register_attention,
    torch_dtype,
)
from batching.model.parallel.layers import (
    RowParallelLinear,
    VocabParallelEmbedding,
    VocabParallelHead,
)
from batching.model.parallel.rank_group import RankGroup
from batching.model.parallel.split import Split, check_divides
from kernels.linear import use_onednn_linear

_WEIGHTS, _INDEX = "model.safetensors", "model.safetensors.index.json"
_HEAD, _EMBEDDINGS = "lm_head.weight", "model.embed_tokens.weight"


@dataclass(frozen=True, slots=True)
class ModelSlices:
    """A rank's part of a model on its device.

    shape: with the heads of this rank
    whole, config, num_parameters: those of the model
    """

    model: nn.Module
    shape: ModelShape
    whole: ModelShape
    config: Any
    num_parameters: int

    @property
    def num_bytes(self) -> int:
        """What the weights of this rank take."""
        return sum(one.numel() * one.element_size() for one in self.model.parameters())


def read_divided_config(path: Path, *, dtype: Dtype, num_ranks: int) -> Any:
    """The configuration of a model that so many ranks can share, as transformers has it.

    Raises ModelLoadError for any other, with the arithmetic.
    """
    weight_format = read_weight_format(path)
    if weight_format is not None or dtype == "int8":
        raise ModelLoadError(
            f"weights in {weight_format or dtype} cannot be split over {num_ranks} ranks; take"
            " bfloat16, or one process"
        )
    try:
        config = AutoConfig.from_pretrained(path, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        raise ModelLoadError(f"{path} could not be loaded: {error}") from error
    check_is_supported(config)
    shape = read_shape(config)
    counts = {
        "heads": shape.num_heads,
        "KV heads": shape.num_kv_heads,
        "MLP columns": int(config.intermediate_size),
    }
    check_divides(counts, num_ranks)
    return config


def load_slices(path: Path, *, dtype: Dtype, device: torch.device, group: RankGroup) -> ModelSlices:
    """This rank's part of a model, in evaluation mode. Raises ModelLoadError.

    Nothing of the files is read but its slices.
    """
    config = read_divided_config(path, dtype=dtype, num_ranks=group.size)
    whole = read_shape(config)
    own = _own_config(config, whole, group.size)
    register_attention()
    with torch.device("meta"):
        model: Any = AutoModelForCausalLM.from_config(
            own, dtype=torch_dtype(dtype), attn_implementation=ATTENTION_NAME
        )
    if not all(type(layer) in KNOWN_LAYERS for layer in getattr(model.model, "layers", [None])):
        raise ModelLoadError(
            f"{config.model_type} cannot be split over {group.size} ranks; models of Llama, Mistral"
            " and Qwen can, or take one process"
        )
    model.model.rotary_emb = type(model.model.rotary_emb)(config=own).to(device)
    split = Split(group.rank, group.size)
    num_parameters = _read_slices(model, path, split, whole, device=device)
    _put_layers(model, split, group, whole)
    if device.type == "cpu" and dtype in ("float32", "bfloat16"):
        use_onednn_linear(model)
    shape = _own_shape(whole, group.size)
    return ModelSlices(model.eval(), shape, whole, config, num_parameters)


def _own_config(config: Any, whole: ModelShape, num_ranks: int) -> Any:
    """The configuration of a model with one rank's heads and columns."""
    own = deepcopy(config)
    own.num_attention_heads = whole.num_heads // num_ranks
    own.num_key_value_heads = whole.num_kv_heads // num_ranks
    own.head_dim = whole.head_dim
    own.intermediate_size = config.intermediate_size // num_ranks
    return own


def _own_shape(whole: ModelShape, num_ranks: int) -> ModelShape:
    return replace(
        whole,
        num_heads=whole.num_heads // num_ranks,
        num_kv_heads=whole.num_kv_heads // num_ranks,
    )


def _read_slices(
    model: nn.Module, path: Path, split: Split, whole: ModelShape, *, device: torch.device
) -> int:
    """Give all parameters their slices; the number of parameters of the whole model."""
    wanted = dict(model.named_parameters())
    if whole.has_tied_embeddings:
        wanted.pop(_HEAD, None)
    by_file: dict[Path, list[str]] = defaultdict(list)
    num_parameters = 0
    try:
        files = _find_weights(path)
        missing = sorted(wanted.keys() - files.keys())
        if missing:
            raise ModelLoadError(f"{path} lacks {len(missing)} weights, {missing[0]} among them")
        for name in wanted:
            by_file[files[name]].append(name)
        for file, names in by_file.items():
            with safe_open(file, framework="pt") as opened:
                for name in names:
                    stored = opened.get_slice(name)
                    shape = stored.get_shape()
                    num_parameters += torch.Size(shape).numel()
                    place = split.of_weight(name, shape)
                    # On a CPU it still maps the file, until it is brought into oneDNN's order.
                    weight = stored[place].to(device, wanted[name].dtype).contiguous()
                    _set_weight(model, name, weight)
                    _check_shape(model, name, wanted[name], whole)
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise ModelLoadError(f"{path} could not be loaded: {error}") from error
    if whole.has_tied_embeddings:
        cast(Any, model).lm_head.weight = cast(Any, model).model.embed_tokens.weight
    return num_parameters


def _find_weights(path: Path) -> dict[str, Path]:
    """The file of each weight, by the index if there are several files."""
    if (path / _INDEX).is_file():
        index = json.loads((path / _INDEX).read_text(encoding="utf-8"))
        return {name: path / file for name, file in index["weight_map"].items()}
    with safe_open(path / _WEIGHTS, framework="pt") as opened:
        return dict.fromkeys(opened.keys(), path / _WEIGHTS)


def _set_weight(model: nn.Module, name: str, weight: Tensor) -> None:
    module, _, leaf = name.rpartition(".")
    setattr(model.get_submodule(module), leaf, nn.Parameter(weight, requires_grad=False))


def _check_shape(model: nn.Module, name: str, planned: Tensor, whole: ModelShape) -> None:
    read = model.get_parameter(name)
    is_of_tokens = name in (_HEAD, _EMBEDDINGS)
    if read.shape[1:] != planned.shape[1:] or not (is_of_tokens or len(read) == len(planned)):
        raise ModelLoadError(
            f"{name} has a slice of shape {list(read.shape)}, and the configuration means"
            f" {list(planned.shape)}; {whole.num_heads} heads of {whole.head_dim} are expected"
        )


def _put_layers(model: Any, split: Split, group: RankGroup, whole: ModelShape) -> None:
    """Replace the modules whose results the ranks have to exchange."""
    start = split.part(whole.vocab_size).start
    model.lm_head = VocabParallelHead(
        model.lm_head, group, start=start, vocab_size=whole.vocab_size
    )
    decoder = model.model
    decoder.embed_tokens = VocabParallelEmbedding(decoder.embed_tokens.weight, group, start=start)
    for layer in decoder.layers:
        layer.self_attn.o_proj = RowParallelLinear(layer.self_attn.o_proj, group)
        layer.mlp.down_proj = RowParallelLinear(layer.mlp.down_proj, group)
