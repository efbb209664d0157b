"""Attention the slow way: one row, one head, one position after another, in float64."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor


def attend_row(query: Tensor, keys: Tensor, values: Tensor, *, scale: float) -> Tensor:
    """Output [num_heads, head_dim] float64 of one row that sees all of `keys` and `values`.

    query: [num_heads, head_dim]; keys, values: [num_visible, num_kv_heads, head_dim]
    """
    num_heads, head_dim = query.shape
    num_groups = num_heads // keys.shape[1]
    output = torch.zeros(num_heads, head_dim, dtype=torch.float64)
    for head in range(num_heads):
        head_keys = keys[:, head // num_groups].double()
        scores = [float(query[head].double() @ key) * scale for key in head_keys]
        largest = max(scores)
        weights = [math.exp(score - largest) for score in scores]
        for weight, value in zip(weights, values[:, head // num_groups].double(), strict=True):
            output[head] += weight / math.fsum(weights) * value
    return output


def attend_ragged(
    queries: Sequence[Tensor], keys: Sequence[Tensor], values: Sequence[Tensor], *, scale: float
) -> Tensor:
    """Outputs [num_tokens, num_heads, head_dim] float64 of several requests, rows packed.

    queries: a tensor [num_rows, num_heads, head_dim] for each request, the last of its positions
    keys, values: a tensor [context_len, num_kv_heads, head_dim] for each request
    """
    rows = []
    for query, key, value in zip(queries, keys, values, strict=True):
        first_position = len(key) - len(query)
        for row in range(len(query)):
            num_visible = first_position + row + 1
            rows.append(attend_row(query[row], key[:num_visible], value[:num_visible], scale=scale))
    return torch.stack(rows)
