"""Describes a model from its folder alone, for `model info`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from apply_service.models.manifest import ModelDamagedError, verify_files
from apply_service.models.store import ModelLocation
from batching.model.weight_format import WeightFormat

_DTYPE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDescription:
    """Facts about a model. `kv_bytes_per_token` is for a KV cache in `dtype`.

    `weights` is the number format that they are stored in: a dtype, or a quantisation.
    """

    name: str
    path: Path
    profile: str
    licence: str
    source: str
    revision: str
    source_sha256: str | None
    adapter_sha256: str | None
    dtype: str
    weights: str
    max_position: int
    vocab_size: int
    kv_bytes_per_token: int
    size_bytes: int


def model_info(location: ModelLocation, *, is_verified: bool = False) -> ModelDescription:
    """Describe a model; with `is_verified` every byte of a prepared one is hashed first.

    Raises `ModelDamagedError`.
    """
    manifest = location.manifest
    if is_verified and manifest is not None:
        verify_files(location.path, manifest)
    path = location.path / "config.json"
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
        num_heads = settings["num_attention_heads"]
        num_kv_heads = settings.get("num_key_value_heads") or num_heads
        head_dim = settings.get("head_dim") or settings["hidden_size"] // num_heads
        num_layers = settings["num_hidden_layers"]
        max_position, vocab_size = settings["max_position_embeddings"], settings["vocab_size"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelDamagedError(
            f"{path} cannot be read ({error}); fetch the model again"
        ) from error
    dtype = manifest.dtype if manifest else settings.get("dtype") or settings.get("torch_dtype")
    dtype = dtype or "float32"
    return ModelDescription(
        name=location.name,
        path=location.path,
        profile=location.profile,
        licence=manifest.licence if manifest else "unknown; see the model's own card",
        source=manifest.source if manifest else location.name,
        revision=location.revision,
        source_sha256=manifest.source_sha256 if manifest else None,
        adapter_sha256=manifest.adapter_sha256 if manifest else None,
        dtype=dtype,
        weights=str(WeightFormat.read(settings) or dtype),
        max_position=max_position,
        vocab_size=vocab_size,
        kv_bytes_per_token=2 * num_layers * num_kv_heads * head_dim * _DTYPE_BYTES.get(dtype, 4),
        size_bytes=sum(entry.stat().st_size for entry in location.path.iterdir()),
    )
