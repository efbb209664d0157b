"""Linear layers in int8 on the CPU: weights by output channel, activations by row."""

from __future__ import annotations

import platform
import warnings

import torch
from torch import Tensor, nn

from kernels.linear import copy_mapped_weights, replace_linears

_LARGEST = 127.0
_SMALLEST_SCALE = 1e-12


def int8_linear_reference(
    rows: Tensor, weight: Tensor, bias: Tensor | None = None, *, row_bits: int = 8
) -> Tensor:
    """`rows @ weight.T + bias` with weights rounded to 8 bits and rows to `row_bits`, in float64.

    Each row of `weight` and of `rows` has a scale of its own, so no row depends on another.
    rows: [num_rows, in_features]; weight: [out_features, in_features]
    """
    weight_scales = weight.double().abs().amax(dim=1, keepdim=True).clamp(min=_SMALLEST_SCALE)
    row_scales = rows.double().abs().amax(dim=1, keepdim=True).clamp(min=_SMALLEST_SCALE)
    rounded_weight = (weight.double() / weight_scales * _LARGEST).round() / _LARGEST
    # The range of -1 to 1 is divided into 2^bits - 1 steps; one of the values is exactly zero.
    half, least = ((1 << row_bits) - 1) / 2, -(1 << row_bits - 1)
    rounded_rows = (rows.double() / row_scales * half).round().clamp(least, -least - 1) / half
    output = (rounded_rows * row_scales) @ (rounded_weight * weight_scales).T
    return output if bias is None else output + bias.double()


class Int8Linear(nn.Module):
    """Computes nearly the same as `nn.Linear`, from a quarter of the memory.

    torch's kernel takes one scale for all rows from the largest numbers among them. Rows are
    therefore divided by their own largest number, and two more rows of 1 and -1 make that scale
    the same for every batch: a row gives the same bits whatever else is computed with it.
    """

    def __init__(self, linear: nn.Linear, *, is_shared: bool = False) -> None:
        """Take the float32 weight and bias of `linear`, which is not needed afterwards.

        A weight that `is_shared` is counted by the module that keeps it.
        """
        super().__init__()
        weight = linear.weight.detach()
        self.num_parameters = 0 if is_shared else weight.numel()
        self.out_features = linear.out_features
        self.bias = linear.bias
        self.row_bits = _row_bits()
        scales = (weight.abs().amax(dim=1) / _LARGEST).clamp(min=_SMALLEST_SCALE)
        zeros = torch.zeros(len(scales), dtype=torch.int64)
        with warnings.catch_warnings():
            # torch wants new code to quantise by other packages, and has no other kernel itself.
            warnings.filterwarnings("ignore", category=UserWarning)
            warnings.filterwarnings("ignore", category=DeprecationWarning)
            rounded = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
            self._packed = torch.ops.quantized.linear_prepack(rounded, None)

    def forward(self, rows: Tensor) -> Tensor:
        """rows: [..., in_features] float32. Returns [..., out_features] float32."""
        flat = rows.reshape(-1, rows.shape[-1])
        num_rows = flat.shape[0]
        scales = flat.abs().amax(dim=1, keepdim=True).clamp_(min=_SMALLEST_SCALE)
        scaled = flat.new_empty(num_rows + 2, flat.shape[1])
        torch.div(flat, scales, out=scaled[:num_rows])
        scaled[num_rows], scaled[num_rows + 1] = 1.0, -1.0
        output: Tensor = torch.ops.quantized.linear_dynamic(scaled, self._packed, self.row_bits < 8)
        output = output[:num_rows].mul_(scales)
        if self.bias is not None:
            output += self.bias
        return output.view(*rows.shape[:-1], self.out_features)


def use_int8_linear(model: nn.Module) -> None:
    """Replace the linear layers of a float32 model on the CPU; changes `model`.

    Embeddings stay in float32, also where the last layer shares their weights.
    """
    replace_linears(model, lambda linear, is_shared: Int8Linear(linear, is_shared=is_shared))
    copy_mapped_weights(model)


def count_parameters(model: nn.Module) -> int:
    """Number of trained parameters, those in int8 included; shared ones count once."""
    num_parameters = sum(parameter.numel() for parameter in model.parameters())
    packed = [module for module in model.modules() if isinstance(module, Int8Linear)]
    return num_parameters + sum(module.num_parameters for module in packed)


def _row_bits() -> int:
    """Bits of activations: 7 where sums of two products saturate at 16 bits, else 8."""
    is_x86 = platform.machine().lower() in ("x86_64", "amd64")
    return 7 if is_x86 and not torch.cpu.get_capabilities().get("avx512_vnni", False) else 8
