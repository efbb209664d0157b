"""A prepared model as a GGUF file, for engines that read nothing else.

The file has no tokenizer: whoever runs it is given token ids. Only plain Llama models can be
written. Matrices are F32 or Q8_0, vectors and what does not divide into blocks F32.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import gguf
import numpy as np
import numpy.typing as npt
import torch
from filelock import FileLock
from safetensors import SafetensorError
from safetensors.torch import load_file

from apply_service.apply.errors import ApplyError
from apply_service.models.manifest import file_sha256
from apply_service.models.store import cache_dir

GgufDtype = Literal["F32", "Q8_0"]

_FILE_TYPES = {
    "F32": gguf.LlamaFileType.ALL_F32,
    "Q8_0": gguf.LlamaFileType.MOSTLY_Q8_0,
}
# Raised when the files that are written change, so that no older one is taken for the same.
_FORMAT_VERSION = 1
_Array = npt.NDArray[np.float32]


class GgufExportError(ApplyError):
    """A model that cannot be written as GGUF; the message says what is in the way."""


def cached_gguf(model_dir: Path, dtype: GgufDtype, *, report: Callable[[str], None]) -> Path:
    """The GGUF file of a model in the user's cache, written now if it is not there.

    Before it is written those of other models go: they are hundreds of megabytes each.
    Raises GgufExportError.
    """
    own_name = f"{_weights_digest(model_dir)[:16]}-v{_FORMAT_VERSION}-"
    path = cache_dir() / "gguf" / f"{own_name}{dtype.lower()}.gguf"
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.parent / ".lock"):
        if not path.exists():
            for other in path.parent.glob("*.gguf"):
                if not other.name.startswith(own_name):
                    report(f"removing {other}")
                    other.unlink()
            report(f"writing {path}")
            export_gguf(model_dir, path, dtype=dtype)
    return path


def export_gguf(model_dir: Path, path: Path, *, dtype: GgufDtype) -> None:
    """Write the model in a folder, config.json and safetensors, to `path`, whole or not at all.

    Raises GgufExportError.
    """
    try:
        config = json.loads((model_dir / "config.json").read_text(encoding="utf-8"))
        weights = _read_weights(model_dir)
    except (OSError, ValueError, SafetensorError) as error:
        raise GgufExportError(f"{model_dir} cannot be read as a model ({error})") from error
    _check_plain_llama(config, model_dir)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    writer = gguf.GGUFWriter(partial, gguf.MODEL_ARCH_NAMES[gguf.MODEL_ARCH.LLAMA])
    try:
        _add_metadata(writer, config, dtype)
        _add_tensors(writer, weights, config, dtype)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        partial.replace(path)
    except OSError as error:
        raise GgufExportError(
            f"{path} cannot be written ({error.strerror}); free some space or set"
            " APPLY_SERVICE_CACHE to another folder"
        ) from error
    finally:
        partial.unlink(missing_ok=True)


def _weight_files(model_dir: Path) -> list[Path]:
    """Raises GgufExportError if there are none."""
    paths = sorted(model_dir.glob("*.safetensors"))
    if not paths:
        raise GgufExportError(f"{model_dir} has no *.safetensors; give a folder with a model in it")
    return paths


def _weights_digest(model_dir: Path) -> str:
    """A name for the weights of a folder and how they are put together."""
    digests = [file_sha256(path) for path in (model_dir / "config.json", *_weight_files(model_dir))]
    return hashlib.sha256("".join(digests).encode()).hexdigest()


def _read_weights(model_dir: Path) -> dict[str, torch.Tensor]:
    weights: dict[str, torch.Tensor] = {}
    for path in _weight_files(model_dir):
        weights |= load_file(path)
    return weights


def _check_plain_llama(config: dict[str, Any], model_dir: Path) -> None:
    """Raises GgufExportError for what this file's layout has no place for."""
    architecture = (config.get("architectures") or ["unknown"])[0]
    if architecture != "LlamaForCausalLM":
        raise GgufExportError(
            f"{model_dir} is a {architecture}, and only a LlamaForCausalLM can be written as GGUF;"
            " leave --peers out, or convert the model with llama.cpp's own scripts"
        )
    rope_type = _rope_parameters(config).get("rope_type", "default")
    unusual = [name for name in ("attention_bias", "mlp_bias") if config.get(name)]
    if rope_type != "default":
        unusual.append(f"rope_type {rope_type}")
    if unusual:
        raise GgufExportError(
            f"{model_dir} has {', '.join(unusual)}, which cannot be written as GGUF;"
            " leave --peers out, or convert the model with llama.cpp's own scripts"
        )


def _rope_parameters(config: dict[str, Any]) -> dict[str, Any]:
    """Those of newer configurations, or of older ones in the same form."""
    newer = config.get("rope_parameters")
    if newer:
        return dict(newer)
    scaling = config.get("rope_scaling") or {}
    rope_type = scaling.get("rope_type", scaling.get("type", "default"))
    return {"rope_theta": config.get("rope_theta", 10000.0), "rope_type": rope_type}


def _add_metadata(writer: Any, config: dict[str, Any], dtype: GgufDtype) -> None:
    num_heads = config["num_attention_heads"]
    head_dim = config.get("head_dim") or config["hidden_size"] // num_heads
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(num_heads)
    writer.add_head_count_kv(_num_kv_heads(config))
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_rope_dimension_count(head_dim)
    writer.add_rope_freq_base(_rope_parameters(config)["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_tokenizer_model("none")
    writer.add_file_type(_FILE_TYPES[dtype])
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)


def _num_kv_heads(config: dict[str, Any]) -> int:
    return int(config.get("num_key_value_heads") or config["num_attention_heads"])


def _add_tensors(
    writer: Any, weights: dict[str, torch.Tensor], config: dict[str, Any], dtype: GgufDtype
) -> None:
    """Every weight under its name in GGUF. Raises GgufExportError for one without a name."""
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config["num_hidden_layers"])
    if config.get("tie_word_embeddings"):
        weights = {name: weight for name, weight in weights.items() if name != "lm_head.weight"}
    for name, weight in weights.items():
        gguf_name = names.get_name(name, try_suffixes=(".weight",))
        if gguf_name is None:
            raise GgufExportError(f"the weight {name!r} has no place in a Llama's GGUF file")
        values = weight.float().numpy()
        if name.endswith(".q_proj.weight"):
            values = _interleave_halves(values, config["num_attention_heads"])
        elif name.endswith(".k_proj.weight"):
            values = _interleave_halves(values, _num_kv_heads(config))
        _add_tensor(writer, gguf_name, values, dtype)


def _add_tensor(writer: Any, name: str, values: _Array, dtype: GgufDtype) -> None:
    kind = gguf.GGMLQuantizationType[dtype]
    block_size, _ = gguf.GGML_QUANT_SIZES[kind]
    if kind is gguf.GGMLQuantizationType.F32 or values.ndim < 2 or values.shape[-1] % block_size:
        writer.add_tensor(name, np.ascontiguousarray(values, dtype=np.float32))
    else:
        writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)


def _interleave_halves(values: _Array, num_heads: int) -> _Array:
    """The rows of a projection for rotary pairs that stand side by side.

    `values` is `[num_heads * head_dim, in]` with the pairs half a head apart, as in transformers.
    """
    rows, columns = values.shape
    halves = values.reshape(num_heads, 2, rows // num_heads // 2, columns)
    return halves.swapaxes(1, 2).reshape(rows, columns)
