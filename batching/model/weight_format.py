"""Reads from a model's configuration how its weights are stored, and checks that format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from batching.config import Device, Dtype
from batching.errors import ModelLoadError


@dataclass(frozen=True, slots=True)
class _Method:
    """A way of storing fewer bits whose layers transformers makes, with what they need."""

    package: str
    devices: tuple[Device, ...]


# Layers of other methods want kernels that neither torch nor these packages bring along.
_METHODS = {
    "fp8": _Method("accelerate", ("cpu", "cuda")),
    "compressed-tensors": _Method("compressed_tensors", ("cpu", "cuda")),
    "torchao": _Method("torchao", ("cpu", "cuda")),
    "bitsandbytes": _Method("bitsandbytes", ("cuda",)),
}


@dataclass(frozen=True, slots=True)
class WeightFormat:
    """The format named by a `quantization_config`; `bits` if it says how many."""

    method: str
    bits: str | None

    @classmethod
    def read(cls, settings: Mapping[str, Any]) -> WeightFormat | None:
        """Of the settings of a config.json; None for weights that are stored as they are."""
        stored = settings.get("quantization_config")
        if not isinstance(stored, Mapping):
            return None
        method = stored.get("quant_method")
        if method is None and (stored.get("load_in_8bit") or stored.get("load_in_4bit")):
            method = "bitsandbytes"  # what older checkpoints leave out
        return cls(str(method), _read_bits(stored))

    def __str__(self) -> str:
        return self.method if self.bits is None else f"{self.method} {self.bits}"

    def check(self, *, dtype: Dtype, device: Device) -> None:
        """Raise ModelLoadError, which says what to do, if such weights cannot be served here."""
        method = _METHODS.get(self.method)
        if method is None:
            raise ModelLoadError(
                f"weights quantised by {self.method} cannot be served, weights by"
                f" {' or '.join(sorted(_METHODS))} can; take such a model, or one in bfloat16"
            )
        if dtype == "int8":
            raise ModelLoadError(
                f"the weights are {self} already, and int8 needs plain weights; leave dtype at auto"
            )
        if device not in method.devices:
            raise ModelLoadError(
                f"weights in {self} are computed on {' or '.join(method.devices)} alone, and the"
                f" device is {device}; take the model in bfloat16, or another device"
            )
        if find_spec(method.package) is None:
            name = method.package.replace("_", "-")
            raise ModelLoadError(
                f"weights in {self} need the package {name}, and it is not installed; run"
                f" `pip install {name}`, or take the model in bfloat16"
            )


def _read_bits(stored: Mapping[str, Any]) -> str | None:
    """Such as "int4", from the places where the methods say it."""
    for name, loaded_as in (("load_in_8bit", "int8"), ("load_in_4bit", "int4")):
        if stored.get(name):
            return loaded_as
    for group in (stored.get("config_groups") or {}).values():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if isinstance(weights, Mapping) and weights.get("num_bits"):
            return f"{weights.get('type', 'int')}{weights['num_bits']}"
    bits = stored.get("bits")
    return f"int{bits}" if bits else None
