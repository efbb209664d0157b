"""The only object that touches the device: weights, KV cache, forward pass and verification."""

from __future__ import annotations

import torch

from batching.config import EngineConfig, ModelInfo, resolve_num_blocks
from batching.forward_batch import ForwardBatch
from batching.fused_layers import fuse_layers
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
        if self._ops.fused is not None:
            fuse_layers(self._model, self._ops.fused)
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
        self.model_info = ModelInfo(
            max_position=shape.max_position,
            vocab_size=shape.vocab_size,
            kv_bytes_per_token=kv_bytes_per_token,
            num_kv_tokens=self.num_blocks * self._block_size,
            dtype=config.dtype,
            num_parameters=sum(parameter.numel() for parameter in self._model.parameters()),
            fingerprint=fingerprint_model(config.model_path),
        )

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
