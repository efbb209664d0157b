"""Tries a model before it serves: the paged engine must compute what transformers does.

Families differ in what no setting tells: some ignore the attention that they are given, others add
to it. So a text is computed both ways, in ours in two chunks over scattered blocks, and compared
layer by layer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import Tensor, nn

from batching.errors import ModelLoadError
from batching.model.forward_batch import ForwardBatch
from batching.model.loading import (
    ATTENTION_NAME,
    ModelShape,
    PagedKV,
    compute_logits,
    run_decoder,
)
from batching.request import SamplingParams
from batching.step_plan import ScheduledRequest, StepPlan
from kernels.op_set import Ops

NUM_TOKENS = 64
# To be raised whenever something else is tried.
PROBE_VERSION = 1
_FIRST_CHUNK = 40
_BLOCK_SIZE = 16
_BLOCK_IDS = (3, 0, 5, 1)
_NUM_BLOCKS = 6
# The root mean square of the differences as a share of the spread of the numbers: what a layer may
# add by rounding, which grows with the root of the number of layers, and what all may. One number
# may differ by more.
_LAYER_DIFFERENCE = {torch.float32: 0.001, torch.bfloat16: 0.04, torch.float16: 0.01}
_MAX_DIFFERENCE = {torch.float32: 0.005, torch.bfloat16: 0.15, torch.float16: 0.05}
_MOST_OVER_MEAN = 10


@torch.inference_mode()
def probe_model(model: nn.Module, shape: ModelShape, *, dtype: torch.dtype, ops: Ops) -> None:
    """Raise ModelLoadError, with the layer and the figure, if the engine computes other numbers."""
    family = getattr(model.config, "model_type", "the model")
    try:
        _compare(model, shape, family, dtype=dtype, ops=ops)
    except ModelLoadError:
        raise
    except Exception as error:  # families may need anything that is not given to them
        raise ModelLoadError(
            f"{family} could not be tried, so it cannot be served: {type(error).__name__}: {error}"
        ) from error


def _compare(
    model: nn.Module, shape: ModelShape, family: str, *, dtype: torch.dtype, ops: Ops
) -> None:
    device = next(model.parameters()).device
    token_ids = [(17 + 7919 * place) % shape.vocab_size for place in range(NUM_TOKENS)]
    paged_kv = _untouched_kv(shape, dtype, device)
    paged_layers, paged = _recorded(
        model, lambda: _paged_logits(model, token_ids, paged_kv=paged_kv, ops=ops)
    )
    used = paged_kv.keys.flatten(1, 2)[:, _slots(), :, :]
    for layer, is_written in enumerate((~used.isnan()).flatten(1).all(dim=1).tolist()):
        if not is_written:
            raise ModelLoadError(
                f"{family}: layer {layer} computes its attention without the engine's cache, so it"
                " cannot be served"
            )
    plain_layers, plain = _recorded(model, lambda: _plain_logits(model, token_ids, device))
    limit = _MAX_DIFFERENCE[dtype]
    for layer, (ours, theirs) in enumerate(zip(paged_layers, plain_layers, strict=True)):
        added = _LAYER_DIFFERENCE[dtype] * math.sqrt(layer + 1)
        _check(ours, theirs, f"{family}: layer {layer}", min(added, limit))
    _check(paged, plain, f"{family}: the logits", limit)
    top = plain.topk(2, dim=-1).values
    is_clear = top[:, 0] - top[:, 1] > 2 * (paged - plain).abs().amax()
    if not torch.equal(paged.argmax(-1)[is_clear], plain.argmax(-1)[is_clear]):
        raise ModelLoadError(f"{family}: the engine would write other tokens than transformers")


def _check(ours: Tensor, theirs: Tensor, what: str, limit: float) -> None:
    if not bool(theirs.isfinite().all()):
        raise ModelLoadError(
            f"{what} has NaN or infinity already in transformers; check the weights, or choose"
            " another dtype"
        )
    differences = (ours - theirs).abs() / theirs.std().clamp_min(1e-12)
    mean, most = float(differences.square().mean().sqrt()), float(differences.amax())
    if not (mean <= limit and most <= _MOST_OVER_MEAN * limit):
        raise ModelLoadError(
            f"{what} differs from transformers by {mean:.3g} of its spread, at most {most:.3g}; the"
            f" limit is {limit:g}; this family's attention or state is not what the engine"
            " computes, so it cannot be served"
        )


def _plain_logits(model: nn.Module, token_ids: Sequence[int], device: torch.device) -> Tensor:
    """As transformers computes them, with its own attention: [NUM_TOKENS, vocab_size]."""
    with _attention(model, "eager"):
        call = cast(Callable[..., Any], model)
        output = call(input_ids=torch.tensor([token_ids], device=device), use_cache=False)
    return cast(Tensor, output.logits[0].float())


def _untouched_kv(shape: ModelShape, dtype: torch.dtype, device: torch.device) -> PagedKV:
    """A cache of NaN: what nobody has written must change nothing."""
    size = (shape.num_layers, _NUM_BLOCKS, _BLOCK_SIZE, shape.num_kv_heads, shape.head_dim)
    return PagedKV(
        keys=torch.full(size, torch.nan, dtype=dtype, device=device),
        values=torch.full(size, torch.nan, dtype=dtype, device=device),
    )


def _slots() -> list[int]:
    """Where the cache keeps the text."""
    return [block * _BLOCK_SIZE + offset for block in _BLOCK_IDS for offset in range(_BLOCK_SIZE)]


def _paged_logits(
    model: nn.Module, token_ids: Sequence[int], *, paged_kv: PagedKV, ops: Ops
) -> Tensor:
    """As the engine computes them: [NUM_TOKENS, vocab_size]."""
    device = paged_kv.keys.device
    rows = []
    for start, stop in ((0, _FIRST_CHUNK), (_FIRST_CHUNK, len(token_ids))):
        scheduled = ScheduledRequest(
            request_id="probe",
            token_ids=tuple(token_ids[start:stop]),
            start=start,
            block_ids=_BLOCK_IDS,
            draft=None,
            has_logits=True,
            output_position=0,
            sampling=SamplingParams(max_tokens=1),
        )
        batch = ForwardBatch.from_plan(StepPlan((scheduled,)), block_size=_BLOCK_SIZE)
        rows.append(run_decoder(model, batch.to(device), paged_kv=paged_kv, ops=ops))
    return compute_logits(model, torch.cat(rows))


@contextmanager
def _attention(model: nn.Module, name: str) -> Iterator[None]:
    """Another attention for a while."""
    choose = cast(Callable[[str], None], model.set_attn_implementation)
    choose(name)
    try:
        yield
    finally:
        choose(ATTENTION_NAME)


def _recorded(model: nn.Module, compute: Callable[[], Tensor]) -> tuple[list[Tensor], Tensor]:
    """What each layer puts out, [NUM_TOKENS, hidden_size], and the result."""
    decoder = cast(nn.Module, model.model)
    layers = list(cast(nn.ModuleList, decoder.layers))
    outputs: list[list[Tensor]] = [[] for _ in layers]

    def keep(at: int) -> Callable[..., None]:
        def hook(_module: nn.Module, _inputs: Any, output: Any) -> None:
            hidden = output[0] if isinstance(output, tuple) else output
            outputs[at].append(hidden.reshape(-1, hidden.shape[-1]).float())

        return hook

    handles = [layer.register_forward_hook(keep(at)) for at, layer in enumerate(layers)]
    try:
        result = compute()
    finally:
        for handle in handles:
            handle.remove()
    return [torch.cat(parts) for parts in outputs], result
