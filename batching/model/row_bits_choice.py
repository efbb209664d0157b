"""Chooses how the CPU computes rows: tried once on a machine, stored for its next starts."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from batching.config import RowGroupingMode
from batching.machine_file import MachineFile
from batching.model.loading import ModelShape
from kernels.instruction_set import instruction_set
from kernels.linear import onednn_linears
from kernels.row_bits import AttentionShape, LinearShape, choose_row_bits
from kernels.row_grouping import RowBits, RowGrouping

_LOGGER = logging.getLogger(__name__)

# To be raised whenever rows are computed or tried in another way.
_COMPUTATION_VERSION = 1


def load_row_bits(
    model: nn.Module,
    shape: ModelShape,
    *,
    dtype: torch.dtype,
    mode: RowGroupingMode,
    folder: Path | None,
) -> RowBits:
    """The choice for this model's shapes, from `folder` if it was tried before; logs it."""
    linears = {
        LinearShape(
            in_features=layer.weight.shape[1],
            out_features=layer.weight.shape[0],
            is_packed=layer.weight.is_mkldnn,
        )
        for layer in onednn_linears(model)
    }
    attention = AttentionShape(
        num_heads=shape.num_heads, num_kv_heads=shape.num_kv_heads, head_dim=shape.head_dim
    )
    kept = None
    if folder is not None:
        kept = MachineFile(
            folder,
            row_bits=_COMPUTATION_VERSION,
            linears=sorted(map(repr, linears)),
            attention=attention,
            dtype=dtype,
            mode=mode,
            threads=torch.get_num_threads(),
            torch=torch.__version__,
            instruction_set=instruction_set(),
        )
    row_bits = None if kept is None else kept.load(_read)
    if row_bits is None:
        least = RowGrouping.ALL if mode == "auto" else RowGrouping(mode)
        row_bits = choose_row_bits(linears, attention, dtype=dtype, least=least)
        if kept is not None:
            kept.store({"row_bits": _written(row_bits)})
    _LOGGER.log(logging.INFO if row_bits.is_fastest else logging.WARNING, "%s", row_bits)
    return row_bits


def _written(row_bits: RowBits) -> dict[str, str]:
    return {
        "instruction_set": row_bits.instruction_set,
        "linear": row_bits.linear,
        "attention": row_bits.attention,
        "reason": row_bits.reason,
        "digest": row_bits.digest,
    }


def _read(stored: Mapping[str, Any]) -> RowBits:
    fields = stored["row_bits"]
    return RowBits(
        instruction_set=str(fields["instruction_set"]),
        linear=RowGrouping(fields["linear"]),
        attention=RowGrouping(fields["attention"]),
        reason=str(fields["reason"]),
        digest=str(fields["digest"]),
    )
