"""Reads a drafter's folder: its configuration, and weights that must all be known and fit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from batching.errors import ModelLoadError


class Checkpoint:
    """Configuration and weights of one drafter. Every method raises ModelLoadError.

    Weights are read from `*.safetensors`, or else from `*.pt` and `*.bin` files, of which nothing
    but tensors is loaded.
    """

    def __init__(
        self,
        path: Path,
        *,
        dtype: torch.dtype,
        device: torch.device,
        prefixes: tuple[str, ...] = ("",),
    ) -> None:
        """Read a folder.

        dtype, device: what floating-point weights become
        prefixes: weights of other beginnings are left out, as those of the model may stand there
        """
        self.path = path
        self._dtype = dtype
        self._device = device
        try:
            self.config: Mapping[str, Any] = json.loads(
                (path / "config.json").read_text(encoding="utf-8")
            )
            self._weights = _read_weights(path, prefixes)
        except (OSError, ValueError, SafetensorError, RuntimeError) as error:
            raise ModelLoadError(f"the drafter {path} could not be loaded: {error}") from error

    def number(self, name: str, default: int | None = None) -> int:
        """A whole number, 0 or more, of the configuration."""
        value = self.config.get(name, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise ModelLoadError(
                f"{self.path}/config.json has {name} {value!r}; a whole number is needed"
            )
        return value

    def has(self, name: str) -> bool:
        """True if there is a weight of this name that was not taken yet."""
        return name in self._weights

    def take(self, name: str, *shape: int) -> Tensor:
        """A weight of this shape, in the numbers and on the device of the model."""
        tensor = self._weights.pop(name, None)
        if tensor is None:
            raise ModelLoadError(f"the drafter {self.path} lacks the weight {name}")
        if tuple(tensor.shape) != shape:
            raise ModelLoadError(
                f"the drafter {self.path} has {name} of shape {list(tensor.shape)}, and the model"
                f" needs {list(shape)}; take the drafter that was made for this model"
            )
        dtype = self._dtype if tensor.is_floating_point() else tensor.dtype
        return tensor.to(self._device, dtype)

    def take_all(self, prefix: str) -> dict[str, Tensor]:
        """All weights whose names begin so, without that beginning, as they are stored."""
        names = [name for name in self._weights if name.startswith(prefix)]
        return {name.removeprefix(prefix): self._weights.pop(name) for name in names}

    def take_vocabulary(self, vocab_size: int) -> Tensor | None:
        """The model's ids [num_drafted] int64 of the tokens that are drafted, ascending.

        None if all are. As EAGLE-3 stores them: `d2t` holds what is to be added to a drafted id,
        and `t2d`, which is not needed, marks the same tokens.
        """
        self._weights.pop("t2d", None)
        if "d2t" not in self._weights:
            return None
        offsets = self._weights.pop("d2t").to(self._device, torch.int64)
        token_ids = torch.arange(len(offsets), device=self._device) + offsets
        is_ascending = bool((token_ids[1:] > token_ids[:-1]).all())
        if not is_ascending or int(token_ids[0]) < 0 or int(token_ids[-1]) >= vocab_size:
            raise ModelLoadError(
                f"the drafter {self.path} maps its tokens (d2t) to ids that do not ascend below the"
                f" model's {vocab_size}; take the drafter that was made for this model"
            )
        return token_ids

    def check_all_taken(self, *ignored: str) -> None:
        """Refuse weights that nobody asked for: they would be left out of what is computed."""
        rest = sorted(self._weights.keys() - set(ignored))
        if rest:
            raise ModelLoadError(
                f"the drafter {self.path} has {len(rest)} weights that are not known,"
                f" {rest[0]} among them; it may be of another kind"
            )


def _read_weights(path: Path, prefixes: tuple[str, ...]) -> dict[str, Tensor]:
    for pattern in ("*.safetensors", "*.pt", "*.bin"):
        files = sorted(path.glob(pattern))
        if files:
            break
    else:
        raise FileNotFoundError(f"{path} holds no weights (*.safetensors, *.pt or *.bin)")
    weights: dict[str, Tensor] = {}
    for file in files:
        if file.suffix == ".safetensors":
            with safe_open(file, framework="pt") as opened:
                stored = opened.keys()
                names = [name for name in stored if name.startswith(prefixes)]
                weights |= {name: opened.get_tensor(name) for name in names}
        else:
            loaded = torch.load(file, map_location="cpu", weights_only=True)
            weights |= {name: one for name, one in loaded.items() if name.startswith(prefixes)}
    return weights
