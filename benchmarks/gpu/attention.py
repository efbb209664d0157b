"""The attention kernel at verification sizes: against SDPA, FlashAttention and single rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from inspect import signature

import torch
from torch import Tensor
from torch.nn import functional

from batching.model.cuda_graphs import cuda_capture
from batching.model.loading import ModelShape
from benchmarks.gpu.clock import Roofline, measure_ms
from benchmarks.gpu.steps import BLOCK_SIZE
from kernels.attention_work import AttentionHeads, AttentionWork
from kernels.ops import select_ops


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionTimes:
    """One layer's attention of `num_rows` rows over `context` tokens; times in milliseconds.

    single_rows_ms: the same rows as requests of one row each, in one call
    sdpa_ms: torch, from keys and values that lie side by side; flash_ms: None where there is none
    bandwidth_share: bytes of keys and values over the time, as a share of the copy bandwidth
    roofline_share: the larger of the times for bytes and for operations, over the time
    """

    num_rows: int
    context: int
    ours_ms: float
    single_rows_ms: float
    sdpa_ms: float
    flash_ms: float | None
    bandwidth_share: float
    roofline_share: float


@dataclass(frozen=True, slots=True)
class _Inputs:
    """query: [num_rows, num_heads, head_dim]; keys, values: [context, num_kv_heads, head_dim]."""

    query: Tensor
    keys: Tensor
    values: Tensor
    block_table: Tensor  # [num_blocks] int32, in no order
    key_cache: Tensor
    value_cache: Tensor


def measure_attention(
    shape: ModelShape,
    *,
    num_heads: int,
    num_rows: int,
    context: int,
    dtype: torch.dtype,
    device: torch.device,
    roofline: Roofline,
) -> AttentionTimes:
    """Time one size with random contents; `num_rows` are the last of `context` tokens."""
    query_shape = (num_rows, num_heads, shape.head_dim)
    inputs = _make_inputs(shape, query_shape, context=context, dtype=dtype, device=device)
    ours_ms = _kernel_ms(_paged(inputs, is_split=False), device)
    kv_bytes = 2 * context * shape.num_kv_heads * shape.head_dim * dtype.itemsize
    num_flops = 4 * num_rows * num_heads * shape.head_dim * context
    flash = _flash(inputs)
    return AttentionTimes(
        num_rows=num_rows,
        context=context,
        ours_ms=ours_ms,
        single_rows_ms=_kernel_ms(_paged(inputs, is_split=True), device),
        sdpa_ms=_kernel_ms(_sdpa(inputs), device),
        flash_ms=None if flash is None else _kernel_ms(flash, device),
        bandwidth_share=kv_bytes / ours_ms * 1e3 / roofline.bytes_per_s,
        roofline_share=roofline.floor_ms(num_bytes=kv_bytes, num_flops=num_flops) / ours_ms,
    )


def _kernel_ms(run: Callable[[], Tensor], device: torch.device) -> float:
    """The time of a call's kernels; on a GPU in a graph, so that their launches do not count."""
    replay = cuda_capture()(run)[0] if device.type == "cuda" else run
    return measure_ms(replay, device)


def _make_inputs(
    shape: ModelShape,
    query_shape: tuple[int, int, int],
    *,
    context: int,
    dtype: torch.dtype,
    device: torch.device,
) -> _Inputs:
    generator = torch.Generator(device=device).manual_seed(0)

    def random(*dims: int) -> Tensor:
        return torch.randn(*dims, generator=generator, device=device).to(dtype)

    num_blocks = -(-context // BLOCK_SIZE)
    kv_shape = (num_blocks, BLOCK_SIZE, shape.num_kv_heads, shape.head_dim)
    key_cache, value_cache = random(*kv_shape), random(*kv_shape)
    table = torch.randperm(num_blocks, generator=generator, device=device)
    return _Inputs(
        query=random(*query_shape),
        keys=key_cache[table].flatten(0, 1)[:context],
        values=value_cache[table].flatten(0, 1)[:context],
        block_table=table.int(),
        key_cache=key_cache,
        value_cache=value_cache,
    )


def _paged(inputs: _Inputs, *, is_split: bool) -> Callable[[], Tensor]:
    """One request of all rows, or a request for each of them."""
    num_rows, device = inputs.query.shape[0], inputs.query.device
    context = inputs.keys.shape[0]
    num_requests = num_rows if is_split else 1
    bounds = torch.linspace(0, num_rows, num_requests + 1, device=device).round().int()
    lens = context - num_rows + bounds[1:]
    tables = inputs.block_table[None].expand(num_requests, -1).contiguous()
    ops = select_ops(device)
    num_heads, num_kv_heads = inputs.query.shape[1], inputs.keys.shape[1]
    work = AttentionWork.plan(
        bounds.cpu().diff().numpy(),
        lens.cpu().numpy(),
        num_tokens=num_rows,
        table_width=tables.shape[1],
        heads=AttentionHeads(
            num_groups=num_heads // num_kv_heads,
            num_kv_heads=num_kv_heads,
            head_dim=inputs.query.shape[2],
        ),
    ).to(device)
    return lambda: ops.paged_attention(
        inputs.query,
        key_cache=inputs.key_cache,
        value_cache=inputs.value_cache,
        block_tables=tables,
        cu_query_lens=bounds,
        context_lens=lens,
        scale=inputs.query.shape[2] ** -0.5,
        work=work,
    )


def _sdpa(inputs: _Inputs) -> Callable[[], Tensor]:
    num_rows, context = inputs.query.shape[0], inputs.keys.shape[0]
    mask = torch.ones(num_rows, context, dtype=torch.bool, device=inputs.query.device)
    mask = mask.tril(context - num_rows)
    query, keys, values = (
        part.transpose(0, 1)[None].contiguous()
        for part in (inputs.query, inputs.keys, inputs.values)
    )
    return lambda: functional.scaled_dot_product_attention(
        query, keys, values, attn_mask=mask, enable_gqa=True
    )


def _flash(inputs: _Inputs) -> Callable[[], Tensor] | None:
    """FlashAttention over ragged sequences: its own package, or else torch's copy of it."""
    if inputs.query.device.type != "cuda" or inputs.query.dtype == torch.float32:
        return None
    device, num_rows = inputs.query.device, inputs.query.shape[0]
    context = inputs.keys.shape[0]
    rows = torch.tensor([0, num_rows], dtype=torch.int32, device=device)
    keys = torch.tensor([0, context], dtype=torch.int32, device=device)
    attend: Callable[..., Tensor]
    options: dict[str, object]
    if find_spec("flash_attn") is not None:
        attend, options = import_module("flash_attn").flash_attn_varlen_func, {"causal": True}
    elif find_spec("torch.nn.attention.varlen") is not None:
        attend = import_module("torch.nn.attention.varlen").varlen_attn
        options = {"window_size": (-1, 0), "enable_gqa": True}
        if "enable_gqa" not in signature(attend).parameters:  # older torch
            return None
    else:
        return None
    lens = (rows, keys, num_rows, context)
    return lambda: attend(inputs.query, inputs.keys, inputs.values, *lens, **options)
