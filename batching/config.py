"""Configuration of the engine, and the values that follow from it for a given model."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from batching.errors import ModelLoadError
from kernels.row_grouping import RowBits

Dtype = Literal["float32", "bfloat16", "float16", "int8"]
Device = Literal["cpu", "cuda"]
DraftBudgetMode = Literal["auto", "fixed"]
RowGroupingMode = Literal["auto", "tiles", "single"]
CachePayload = Literal["exact", "float16", "int8"]

CPU_KV_MEMORY = 384 << 20
# Of a GPU's free memory; logits, activations, partial results and graphs need some as well.
_KV_SHARE = 0.9
_WORKING_BYTES = 2 << 30
# A prompt and the answer for an edit of one function.
MIN_KV_TOKENS = 1024
# Prompts of regions have some 300 tokens; larger chunks would miss most of what they share.
DEFAULT_CHUNK_TOKENS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerConfig:
    """Limits of one step and of the queue.

    `max_tokens_per_step` is the token budget: rows of all requests in one forward pass.
    After `ageing_s` of waiting a batch request counts as interactive, one at a time.
    """

    block_size: int = 16
    max_tokens_per_step: int = 512
    max_running: int = 32
    max_waiting: int = 256
    max_draft_tokens: int = 64
    ageing_s: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheConfig:
    """The tiers of the prefix cache below the device; without memory there are none.

    `memory_bytes` is host memory, through which everything from and to Redis goes. `timeout_s`
    bounds what a request may wait for Redis. With `secrets` values carry a code that only their
    owners can make: the first makes it, all are accepted. Only the payload "exact" keeps every
    token.
    """

    memory_bytes: int = 0
    chunk_tokens: int = DEFAULT_CHUNK_TOKENS
    payload: CachePayload = "exact"
    redis_url: str | None = field(default=None, repr=False)
    secrets: tuple[bytes, ...] = field(default=(), repr=False)
    timeout_s: float = 1.0
    connect_timeout_s: float = 0.5
    ttl_s: int = 86_400


@dataclass(frozen=True, slots=True)
class DrafterConfig:
    """A drafter: its kind, by `drafters.registry`, and the folder or the number that it takes."""

    kind: str
    path: Path | None = None
    number: int | None = None


def parse_drafters(text: str) -> tuple[DrafterConfig, ...]:
    """Drafters as settings have them: `KIND`, `KIND:FOLDER` or `KIND:NUMBER`, between commas."""
    return tuple(_parse_drafter(part.strip()) for part in text.split(",") if part.strip())


def _parse_drafter(text: str) -> DrafterConfig:
    kind, _, given = text.partition(":")
    if given.isdecimal():
        return DrafterConfig(kind, number=int(given))
    return DrafterConfig(kind, Path(given) if given else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """Everything `build_engine` needs. `num_threads` None leaves torch's own choice.

    `kv_memory_bytes` None is what `resolve_kv_memory` says.

    With the dtype "int8" linear layers are quantised, and everything else is float32; CPU alone.
    With `use_cuda_graphs` steps on a GPU are captured at start, if the model's layers are fused.
    With the draft budget "auto" drafts are as long as they are worth in each step, by costs that
    are measured at start, unless `step_cost_dir` has them; with "fixed" as long as they may be.
    `row_grouping` is the fastest way to compute rows on the CPU that may be taken. `drafters` are
    asked in their order where copying promises little. `tensor_parallel` processes share the model;
    `kv_memory_bytes` and `num_threads` are those of each.
    """

    model_path: Path
    dtype: Dtype = "float32"
    device: Device = "cpu"
    kv_memory_bytes: int | None = None
    num_threads: int | None = None
    use_cuda_graphs: bool = True
    draft_budget: DraftBudgetMode = "fixed"
    row_grouping: RowGroupingMode = "auto"
    step_cost_dir: Path | None = None
    scheduler: SchedulerConfig = SchedulerConfig()
    cache: CacheConfig = CacheConfig()
    drafters: tuple[DrafterConfig, ...] = ()
    tensor_parallel: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """Facts about a loaded model. `max_position` is its longest context.

    `row_bits` says how a CPU computes rows; None on a GPU.
    """

    max_position: int
    vocab_size: int
    kv_bytes_per_token: int
    num_kv_tokens: int
    dtype: Dtype
    num_parameters: int
    fingerprint: str
    row_bits: RowBits | None = None


def resolve_kv_memory(
    kv_memory_bytes: int | None, *, free_bytes: int | None, kv_bytes_per_token: int
) -> int:
    """What the KV cache takes: what is asked for, or else what a GPU has left, or a CPU's default.

    free_bytes: of a GPU, once the model is there; None on a CPU
    Raises ModelLoadError, with the arithmetic, if it is not there or too little.
    """
    if free_bytes is None:
        return CPU_KV_MEMORY if kv_memory_bytes is None else kv_memory_bytes
    room = max(0, min(int(_KV_SHARE * free_bytes), free_bytes - _WORKING_BYTES))
    arithmetic = (
        f"the GPU has {free_bytes / 1e9:.1f} GB free beside the model, of which computing takes"
        f" {_WORKING_BYTES / 1e9:.1f} GB; {room / 1e9:.1f} GB are left for keys and values, which"
        f" are {room // kv_bytes_per_token} tokens of {kv_bytes_per_token} bytes"
    )
    if kv_memory_bytes is not None:
        if kv_memory_bytes > free_bytes:
            raise ModelLoadError(
                f"{arithmetic}, and the KV cache is to have {kv_memory_bytes / 1e9:.1f} GB; lower"
                " kv_memory, or leave it unset"
            )
        return kv_memory_bytes
    if room < MIN_KV_TOKENS * kv_bytes_per_token:
        raise ModelLoadError(
            f"{arithmetic}, and at least {MIN_KV_TOKENS} are needed; stop what else uses the GPU,"
            " or take a smaller model or one with quantised weights"
        )
    return room


def resolve_num_blocks(kv_memory_bytes: int, *, kv_bytes_per_token: int, block_size: int) -> int:
    """The number of KV blocks that fit. Raises ModelLoadError if none does."""
    num_blocks = kv_memory_bytes // (kv_bytes_per_token * block_size)
    if num_blocks < 1:
        raise ModelLoadError(
            f"the KV cache of {kv_memory_bytes} bytes holds no block, and a block takes"
            f" {kv_bytes_per_token * block_size} bytes; give it more memory"
        )
    return num_blocks
