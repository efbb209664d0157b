"""Loading a transformers model so that its attention reads and writes our paged cache."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from transformers import AttentionInterface, AutoConfig, AutoModelForCausalLM
from transformers.masking_utils import AttentionMaskInterface
from transformers.utils import logging as transformers_logging

from batching.config import Dtype
from batching.errors import ModelLoadError
from batching.model.forward_batch import ForwardBatch
from batching.model.weight_format import WeightFormat
from kernels.int8_linear import use_int8_linear
from kernels.linear import use_onednn_linear
from kernels.op_set import Ops

ATTENTION_NAME = "apply_service_paged"
_POSITION_DEPENDENT_ROPE = ("dynamic", "longrope")
_NEUTRAL_SETTINGS: dict[str, tuple[float | None, ...]] = {
    "attn_logit_softcapping": (None,),
    "final_logit_softcapping": (None,),
    "logits_scaling": (None, 1, 1.0),
    "logit_scale": (None, 1, 1.0),
}


@dataclass(frozen=True, slots=True)
class PagedKV:
    """The KV cache of all layers: two tensors [num_layers, num_blocks, block_size, kv_heads, d]."""

    keys: Tensor
    values: Tensor

    def copy_blocks(self, sources: Tensor, targets: Tensor) -> None:
        """Copy whole blocks in all layers. sources, targets: [n] int64, without a common block."""
        for cache in (self.keys, self.values):
            cache[:, targets] = cache[:, sources]


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Sizes of a model on which the cache and the limits depend."""

    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    hidden_size: int
    vocab_size: int
    max_position: int
    has_tied_embeddings: bool

    def kv_bytes_per_token(self, dtype: torch.dtype) -> int:
        """Bytes that one token's keys and values take in all layers."""
        return 2 * self.num_layers * self.num_kv_heads * self.head_dim * dtype.itemsize


# Tries a model as transformers has loaded it; raises ModelLoadError.
Probe = Callable[[nn.Module, "ModelShape"], None]


def load_model(
    path: Path, *, dtype: Dtype, device: torch.device, probe: Probe | None = None
) -> tuple[nn.Module, ModelShape]:
    """The model in evaluation mode on `device`, and its shape; `probe` tries it.

    Raises ModelLoadError for a missing or damaged folder and for families whose state cannot be
    rolled back or whose attention is not plain causal attention.
    """
    if dtype == "int8" and device.type != "cpu":
        raise ModelLoadError(
            f"int8 is computed only on a CPU, and the device is {device.type}; choose bfloat16"
        )
    weight_format = read_weight_format(path)
    if weight_format is not None:
        weight_format.check(dtype=dtype, device="cpu" if device.type == "cpu" else "cuda")
    model, config = _read_weights(path, weight_format, dtype=dtype, device=device)
    model, shape = model.eval(), read_shape(config)
    is_as_loaded = weight_format is not None and is_quantised(model)
    if not is_as_loaded:
        # What a device cannot multiply, transformers has made plain weights of.
        model = model.to(device, torch_dtype(dtype))
    if probe is not None:
        probe(model, shape)
    if is_as_loaded:
        return model, shape
    if device.type == "cpu" and dtype in ("float32", "bfloat16"):
        use_onednn_linear(model)
    elif dtype == "int8":
        use_int8_linear(model)
    return model, shape


def is_quantised(model: nn.Module) -> bool:
    """True if transformers has put layers of another weight format in the place of linear ones."""
    return getattr(model.config, "quantization_config", None) is not None


def read_weight_format(path: Path) -> WeightFormat | None:
    """The format of weights that are not stored as they are; raises ModelLoadError."""
    if not (path / "config.json").is_file():
        raise ModelLoadError(f"{path} holds no config.json; give a folder with a prepared model")
    try:
        settings = json.loads((path / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelLoadError(f"{path} could not be loaded: {error}") from error
    return WeightFormat.read(settings) if isinstance(settings, dict) else None


def _read_weights(
    path: Path, weight_format: WeightFormat | None, *, dtype: Dtype, device: torch.device
) -> tuple[nn.Module, Any]:
    """The model and its configuration; other formats are made on their device at once."""
    transformers_logging.disable_progress_bar()
    try:
        config = AutoConfig.from_pretrained(path, trust_remote_code=False)
        check_is_supported(config)
        register_attention()
        if weight_format is not None and weight_format.method == "fp8" and device.type == "cpu":
            # A CPU has no product of such numbers: they become plain ones.
            config.quantization_config["dequantize"] = True
        model, loading = AutoModelForCausalLM.from_pretrained(
            path,
            config=None if weight_format is None else config,
            dtype=torch_dtype(dtype),
            attn_implementation=ATTENTION_NAME,
            trust_remote_code=False,
            output_loading_info=True,
            device_map=None if weight_format is None else {"": str(device)},
        )
    except (OSError, ValueError, KeyError, RuntimeError, ImportError, SafetensorError) as error:
        raise ModelLoadError(f"{path} could not be loaded: {error}") from error
    if loading["missing_keys"]:
        # Transformers would go on with random numbers in their place.
        missing = sorted(loading["missing_keys"])
        raise ModelLoadError(f"{path} lacks {len(missing)} weights, {missing[0]} among them")
    return model, config


def torch_dtype(dtype: Dtype) -> torch.dtype:
    """The dtype of activations, keys and values."""
    return torch.float32 if dtype == "int8" else cast(torch.dtype, getattr(torch, dtype))


def run_decoder(model: nn.Module, batch: ForwardBatch, *, paged_kv: PagedKV, ops: Ops) -> Tensor:
    """Last hidden states [num_tokens, hidden_size] of a batch; writes the rows' KV."""
    decoder = cast(Callable[..., Any], model.model)
    if batch.shared is not None:
        paged_kv.copy_blocks(batch.shared.copied_from, batch.shared.copied_to)
    output = decoder(
        input_ids=batch.input_ids[None],
        position_ids=batch.position_ids[None],
        use_cache=False,
        batch=batch,
        paged_kv=paged_kv,
        ops=ops,
    )
    return cast(Tensor, output.last_hidden_state[0])


def compute_logits(model: nn.Module, rows: Tensor) -> Tensor:
    """Logits [num_rows, vocab_size] float32 of hidden rows [num_rows, hidden_size]."""
    lm_head = cast(Callable[[Tensor], Tensor], model.lm_head)
    return lm_head(rows).float()


def attend_paged(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    layer_index: int,
    scale: float,
    batch: ForwardBatch,
    paged_kv: PagedKV,
    ops: Ops,
) -> Tensor:
    """Write one layer's new keys and values, then attend: [num_tokens, num_heads, head_dim].

    query: [num_tokens, num_heads, head_dim]; key, value: [num_tokens, num_kv_heads, head_dim]
    """
    key_cache, value_cache = paged_kv.keys[layer_index], paged_kv.values[layer_index]
    ops.store_kv(
        key,
        value,
        key_cache=key_cache,
        value_cache=value_cache,
        slot_mapping=batch.slot_mapping,
    )
    if batch.shared is not None and len(batch.shared.rows):
        ops.store_kv(
            key[batch.shared.rows],
            value[batch.shared.rows],
            key_cache=key_cache,
            value_cache=value_cache,
            slot_mapping=batch.shared.slots,
        )
    return ops.paged_attention(
        query,
        key_cache=key_cache,
        value_cache=value_cache,
        block_tables=batch.block_tables,
        cu_query_lens=batch.cu_query_lens,
        context_lens=batch.context_lens,
        scale=scale,
        work=batch.work,
    )


def check_is_supported(config: Any) -> None:
    """Raise ModelLoadError if the engine cannot serve this family correctly."""
    family = config.model_type
    if getattr(config, "is_encoder_decoder", False):
        raise ModelLoadError(f"{family} has an encoder; only decoder-only models can be served")
    if not getattr(config, "num_attention_heads", None):
        raise ModelLoadError(f"{family} has no attention heads; its state cannot be rolled back")
    layer_types = getattr(config, "layer_types", None)
    unsupported = sorted(set(layer_types or ()) - {"full_attention"})
    if unsupported:
        raise ModelLoadError(
            f"{family} has layers of type {', '.join(unsupported)}; every layer must be full"
            " attention, because rejected drafts are rolled back"
        )
    if layer_types is None and getattr(config, "sliding_window", None):
        raise ModelLoadError(
            f"{family} uses a sliding window of {config.sliding_window}; only full attention"
            " can be served"
        )
    rope_type = (getattr(config, "rope_parameters", None) or {}).get("rope_type", "default")
    if rope_type in _POSITION_DEPENDENT_ROPE:
        raise ModelLoadError(
            f"{family} uses {rope_type} rotary embeddings, and they change with the length of the"
            " context; cached keys would become wrong"
        )
    for name, neutral in _NEUTRAL_SETTINGS.items():
        if getattr(config, name, None) not in neutral:
            raise ModelLoadError(f"{family} sets {name}, and the engine does not compute it")


def read_shape(config: Any) -> ModelShape:
    """The shape of a supported model, from transformers' configuration of it."""
    num_heads = config.num_attention_heads
    return ModelShape(
        num_layers=config.num_hidden_layers,
        num_heads=num_heads,
        num_kv_heads=getattr(config, "num_key_value_heads", None) or num_heads,
        head_dim=getattr(config, "head_dim", None) or config.hidden_size // num_heads,
        hidden_size=config.hidden_size,
        vocab_size=config.vocab_size,
        max_position=config.max_position_embeddings,
        has_tied_embeddings=bool(config.tie_word_embeddings),
    )


def register_attention() -> None:
    """Make transformers know the paged attention by its name, `ATTENTION_NAME`."""
    AttentionInterface.register(ATTENTION_NAME, _attend)
    AttentionMaskInterface.register(ATTENTION_NAME, _no_mask)


def _no_mask(*_args: Any, **_kwargs: Any) -> None:
    """Transformers' mask builder: the paged attention knows what each row may see."""


def _attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    _attention_mask: None,
    *,
    scaling: float,
    batch: ForwardBatch,
    paged_kv: PagedKV,
    ops: Ops,
    **_unused: Any,
) -> tuple[Tensor, None]:
    """Transformers' attention call for one layer.

    query: [1, num_heads, num_tokens, head_dim]; key, value: [1, num_kv_heads, num_tokens, head_dim]
    Returns [1, num_tokens, num_heads, head_dim].
    """
    attended = attend_paged(
        query[0].transpose(0, 1),
        key[0].transpose(0, 1),
        value[0].transpose(0, 1),
        layer_index=int(module.layer_idx),  # type: ignore[arg-type]
        scale=scaling,
        batch=batch,
        paged_kv=paged_kv,
        ops=ops,
    )
    return attended[None], None
