"""Root-mean-square normalisation of rows, with or without adding them to a residual stream."""

from __future__ import annotations

import torch
from torch import Tensor


def rms_norm_reference(hidden: Tensor, weight: Tensor, *, eps: float) -> Tensor:
    """`hidden` with rows of mean square 1, times `weight`, in the dtype of `hidden`; contiguous.

    The mean square is taken in float32, and the row is rounded before it is multiplied.

    hidden: [..., row_size] of two or three dimensions, any strides but 1 for the last
    weight: [row_size]
    """
    rows = hidden.float()
    rows = rows * torch.rsqrt(rows.pow(2).mean(dim=-1, keepdim=True) + eps)
    return weight * rows.to(hidden.dtype)


def add_rms_norm_reference(
    hidden: Tensor, residual: Tensor, weight: Tensor, *, eps: float
) -> Tensor:
    """Add `hidden` to `residual` in place, and return the sum normalised.

    hidden, residual: [num_tokens, row_size], contiguous; weight: [row_size]
    """
    residual.add_(hidden)
    return rms_norm_reference(residual, weight, eps=eps)
