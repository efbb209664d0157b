"""Converts model files: GGUF to safetensors, and an adapter merged into its base."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from batching.errors import ModelLoadError

WEIGHTS_NAME = "model.safetensors"
_ADAPTER_KEY_PREFIX = "base_model.model."
# Adapter settings that change the arithmetic and must stand at their defaults.
_PLAIN_SETTINGS = (
    "use_dora",
    "modules_to_save",
    "rank_pattern",
    "alpha_pattern",
    "fan_in_fan_out",
    "lora_bias",
    "megatron_config",
    "trainable_token_indices",
    "target_parameters",
)


def convert_gguf(gguf_path: Path, output_dir: Path) -> None:
    """Write config, float32 weights and tokenizer of a GGUF file into an existing folder.

    Quantised weights are expanded. Raises `ModelLoadError` if the file is damaged or of an
    architecture that cannot be read.
    """
    source: dict[str, Any] = {"gguf_file": gguf_path.name, "local_files_only": True}
    try:
        model = AutoModelForCausalLM.from_pretrained(
            gguf_path.parent, dtype=torch.float32, trust_remote_code=False, **source
        )
        config = AutoConfig.from_pretrained(gguf_path.parent, trust_remote_code=False, **source)
        tokenizer = AutoTokenizer.from_pretrained(
            gguf_path.parent, trust_remote_code=False, **source
        )
    except (OSError, ValueError, KeyError, IndexError, NotImplementedError) as error:
        raise ModelLoadError(f"{gguf_path} cannot be converted ({error})") from error
    weights = {name: weight.contiguous() for name, weight in model.state_dict().items()}
    if model.config.tie_word_embeddings:
        weights.pop("lm_head.weight", None)
    _save_weights(weights, output_dir)
    # The model's own configuration would still call the weights quantised.
    config.architectures, config.dtype = [type(model).__name__], torch.float32
    config.save_pretrained(output_dir)
    tokenizer.save_pretrained(output_dir)


def merge_adapter(base_dir: Path, adapter_dir: Path, output_dir: Path) -> None:
    """Write the base model with a LoRA adapter added to its weights into an existing folder.

    W += scale * B @ A in float32, for every pair in the adapter. All other files of the base but
    `manifest.json` are copied. Raises `ModelLoadError` if the adapter does not fit the base.
    """
    scale = _adapter_scale(adapter_dir)
    try:
        weights = load_file(base_dir / WEIGHTS_NAME)
        adapter = _read_adapter(adapter_dir)
    except (OSError, SafetensorError) as error:
        raise ModelLoadError(f"{adapter_dir} cannot be merged ({error})") from error
    modules = {name.rpartition(".lora_")[0] for name in adapter}
    if not modules:
        raise ModelLoadError(f"{adapter_dir} holds no adapter weights")
    for module in modules:
        _add_pair(weights, adapter, module=module, scale=scale)
    _save_weights(weights, output_dir)
    for path in base_dir.iterdir():
        if path.is_file() and path.name not in (WEIGHTS_NAME, "manifest.json"):
            shutil.copyfile(path, output_dir / path.name)


def _save_weights(weights: dict[str, torch.Tensor], output_dir: Path) -> None:
    path = output_dir / WEIGHTS_NAME
    try:
        save_file(weights, path, metadata={"format": "pt"})
    except (OSError, SafetensorError) as error:
        raise ModelLoadError(f"{path} cannot be written ({error}); free some space") from error


def _adapter_scale(adapter_dir: Path) -> float:
    """The factor of B @ A. Raises `ModelLoadError` for anything but plain LoRA."""
    path = adapter_dir / "adapter_config.json"
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
        rank, alpha = int(settings["r"]), float(settings["lora_alpha"])
        is_lora = settings["peft_type"] == "LORA"
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelLoadError(f"{path} cannot be read ({error})") from error
    unusual = [name for name in _PLAIN_SETTINGS if settings.get(name)]
    if not is_lora or rank < 1 or unusual or settings.get("bias", "none") != "none":
        raise ModelLoadError(
            f"{path} is not a plain LoRA adapter ({', '.join(unusual) or 'type, rank or bias'});"
            " merge it with peft and give the merged model instead"
        )
    return alpha / rank**0.5 if settings.get("use_rslora") else alpha / rank


def _read_adapter(adapter_dir: Path) -> dict[str, torch.Tensor]:
    """All adapter weights in float32, by their name in the base model; one file or shards."""
    adapter: dict[str, torch.Tensor] = {}
    for path in sorted(adapter_dir.glob("adapter_model*.safetensors")):
        with safe_open(path, framework="pt") as shard:
            for name in shard.keys():  # noqa: SIM118
                adapter[name.removeprefix(_ADAPTER_KEY_PREFIX)] = shard.get_tensor(name).float()
    return adapter


def _add_pair(
    weights: dict[str, torch.Tensor],
    adapter: dict[str, torch.Tensor],
    *,
    module: str,
    scale: float,
) -> None:
    """Add one pair of the adapter, A `[rank, in]` and B `[out, rank]`, to its weight in place."""
    down, up = (adapter.get(f"{module}.lora_{side}.weight") for side in "AB")
    weight = weights.get(f"{module}.weight")
    if down is None or up is None or weight is None:
        raise ModelLoadError(
            f"the adapter's module {module!r} is incomplete or not part of the base model"
        )
    if weight.shape != (up.shape[0], down.shape[1]) or up.shape[1] != down.shape[0]:
        raise ModelLoadError(
            f"the adapter's module {module!r} has shapes {tuple(up.shape)} and"
            f" {tuple(down.shape)}; the base model needs {tuple(weight.shape)}"
        )
    weights[f"{module}.weight"] = (weight.float() + scale * (up @ down)).to(weight.dtype)
