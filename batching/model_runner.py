"""The only object that touches the device: weights, KV cache, forward pass and verification."""

from __future__ import annotations

import torch

from batching.config import EngineConfig, ModelInfo, resolve_num_blocks
from batching.errors import CacheConfigError
from batching.forward_batch import ForwardBatch
from batching.kv_namespace import kv_namespace
from batching.kv_transfer import KVTransfer
from batching.model import PagedKV, fingerprint_model, load_model, run_model
from batching.request import SamplingParams
from batching.step_plan import ScheduledRequest, StepPlan, StepResult
from batching.verifier import verify
from kernels.ops import select_ops


class ModelRunner:
    """Executes step plans. Owns the weights and the paged KV cache; one thread at a time."""

    def __init__(self, config: EngineConfig) -> None:
        """Load the model and take the memory of the KV cache; raises ModelLoadError."""
        if config.num_threads is not None:
            torch.set_num_threads(config.num_threads)
        self._device = torch.device(config.device)
        self._block_size = config.scheduler.block_size
        self._ops = select_ops(self._device)
        self._model, shape = load_model(config.model_path, dtype=config.dtype, device=self._device)
        dtype = getattr(torch, config.dtype)
        kv_bytes_per_token = shape.kv_bytes_per_token(dtype)
        self.num_blocks = resolve_num_blocks(
            config.kv_memory_bytes,
            kv_bytes_per_token=kv_bytes_per_token,
            block_size=self._block_size,
        )
        cache_shape = (
            shape.num_layers,
            self.num_blocks,
            self._block_size,
            shape.num_kv_heads,
            shape.head_dim,
        )
        self._paged_kv = PagedKV(
            keys=torch.zeros(cache_shape, dtype=dtype, device=self._device),
            values=torch.zeros(cache_shape, dtype=dtype, device=self._device),
        )
        self.kv_transfer = self._make_transfer(config)
        self.kv_namespace = b"" if self.kv_transfer is None else _namespace_of(config)
        self.model_info = ModelInfo(
            max_position=shape.max_position,
            vocab_size=shape.vocab_size,
            kv_bytes_per_token=kv_bytes_per_token,
            num_kv_tokens=self.num_blocks * self._block_size,
            dtype=config.dtype,
            num_parameters=sum(parameter.numel() for parameter in self._model.parameters()),
            fingerprint=fingerprint_model(config.model_path),
        )

    def _make_transfer(self, config: EngineConfig) -> KVTransfer | None:
        """The way to the lower tiers of the prefix cache, if there are any."""
        cache = config.cache
        if not cache.memory_bytes:
            if cache.redis_url is not None:
                raise CacheConfigError(
                    "the cache memory is 0 bytes and there is a Redis URL: all that comes from"
                    " Redis goes through this memory; give it some, such as 256MiB"
                )
            return None
        if cache.chunk_tokens < 1 or cache.chunk_tokens % self._block_size:
            raise CacheConfigError(
                f"a chunk of the cache has {cache.chunk_tokens} tokens; take a multiple of"
                f" {self._block_size}"
            )
        chunk_blocks = cache.chunk_tokens // self._block_size
        return KVTransfer(self._paged_kv, chunk_blocks=chunk_blocks, payload=cache.payload)

    @torch.inference_mode()
    def execute(self, plan: StepPlan) -> StepResult:
        """Compute every row of the plan and verify its drafts."""
        batch = ForwardBatch.from_plan(plan, block_size=self._block_size, device=self._device)
        logits = run_model(self._model, batch, paged_kv=self._paged_kv, ops=self._ops)
        return verify(logits, plan, batch, ops=self._ops)

    def warm_up(self) -> None:
        """Run one token through block 0, so that the first request pays for no initialisation."""
        warm_up = ScheduledRequest(
            request_id="warm-up",
            token_ids=(0,),
            start=0,
            block_ids=(0,),
            draft=None,
            has_logits=True,
            output_position=0,
            sampling=SamplingParams(max_tokens=1),
        )
        self.execute(StepPlan((warm_up,)))


def _namespace_of(config: EngineConfig) -> bytes:
    """What keys in shared tiers begin with; a process alone need not read its weights for it."""
    if config.cache.redis_url is None:
        return b"this process"
    return kv_namespace(
        config.model_path,
        dtype=config.dtype,
        device=config.device,
        block_size=config.scheduler.block_size,
        chunk_tokens=config.cache.chunk_tokens,
        payload=config.cache.payload,
    )
