"""The only object that touches the device: weights, KV cache, forward pass and verification."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import cast

import torch
from torch import Tensor, nn

from batching.cache.kv_namespace import kv_namespace
from batching.cache.kv_transfer import KVTransfer
from batching.config import (
    CachePayload,
    EngineConfig,
    ModelInfo,
    resolve_kv_memory,
    resolve_num_blocks,
)
from batching.cost_measurement import StepPlans, measure_step_costs
from batching.drafters.drafter import Drafter
from batching.drafters.target import TargetModel
from batching.errors import CacheConfigError
from batching.fingerprint import fingerprint_as, fingerprint_model
from batching.machine_file import MachineFile
from batching.model.cuda_graphs import USES_BEFORE_CAPTURE, CudaGraphs, GraphLimits, read_graph_keys
from batching.model.forward_batch import ForwardBatch, VerifiedRows
from batching.model.head_choice import HeadChoice, TimeMs, measure_head_choice
from batching.model.loading import (
    ModelShape,
    PagedKV,
    compute_logits,
    is_quantised,
    load_model,
    run_decoder,
    torch_dtype,
)
from batching.model.model_probe import PROBE_VERSION, probe_model
from batching.model.row_bits_choice import load_row_bits
from batching.model.staging import Staging
from batching.model.taps import Taps
from batching.model.verifier import join_outcomes, pack_outcome, read_outcome, verify_logits
from batching.pending_step import DeviceStep, FinishedStep, PendingStep
from batching.request import SamplingParams
from batching.step_costs import StepCosts
from batching.step_plan import ScheduledRequest, StepPlan, StepResult
from kernels.attention_work import AttentionHeads
from kernels.int8_linear import count_parameters
from kernels.linear import group_rows
from kernels.op_set import FusedOps
from kernels.ops import select_ops
from kernels.row_grouping import RowBits, RowGrouping

# Rows whose logits are wanted are verified in parts whose logits (float32) take no more; copies of
# them may exist beside. Greedy rows go some at a time, and keep their argmax alone.
MAX_LOGITS_BYTES = 512 << 20
# How much longer a start may take because the costs of steps are measured, and with graphs.
_MEASURING_S = 0.8
_CAPTURING_S = 4.0


@dataclass(frozen=True, slots=True)
class DeviceModel:
    """A model on its device, what the cache needs to know of it, and what tells it from others."""

    model: nn.Module
    shape: ModelShape
    fingerprint: str


class ModelRunner:
    """Executes step plans. Owns the weights and the paged KV cache; one thread at a time."""

    def __init__(self, config: EngineConfig, *, loaded: DeviceModel | None = None) -> None:
        """Load the model, unless one is given, and take the memory of the KV cache.

        Raises ModelLoadError.
        """
        if config.num_threads is not None:
            torch.set_num_threads(config.num_threads)
        self._device = torch.device(config.device)
        self._block_size = config.scheduler.block_size
        self._max_rows = config.scheduler.max_tokens_per_step
        loaded = loaded or _load(config, self._device)
        self._model, shape = loaded.model, loaded.shape
        self._shape = shape
        self.row_bits: RowBits | None = None
        attention_rows = RowGrouping.ALL
        if self._device.type == "cpu":
            self.row_bits = load_row_bits(
                self._model,
                shape,
                dtype=torch_dtype(config.dtype),
                mode=config.row_grouping,
                folder=config.step_cost_dir,
            )
            group_rows(self._model, self.row_bits.linear)
            attention_rows = self.row_bits.attention
        self._ops = select_ops(self._device, attention_rows=attention_rows)
        is_fused = self._ops.fused is not None and _fuse(self._model, self._ops.fused)
        dtype = torch_dtype(config.dtype)
        kv_bytes_per_token = shape.kv_bytes_per_token(dtype)
        self.num_blocks = self._count_blocks(config, kv_bytes_per_token)
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
        self._config = config
        self.kv_transfer = self._make_transfer()
        self.kv_namespace = b"" if self.kv_transfer is None else self._make_namespace()
        self.model_info = ModelInfo(
            max_position=shape.max_position,
            vocab_size=shape.vocab_size,
            kv_bytes_per_token=kv_bytes_per_token,
            num_kv_tokens=self.num_blocks * self._block_size,
            dtype=config.dtype,
            num_parameters=count_parameters(self._model),
            fingerprint=fingerprint_as(loaded.fingerprint, config.dtype),
            row_bits=self.row_bits,
        )
        self._staging = Staging(self._device)
        self._max_logits_rows = max(1, MAX_LOGITS_BYTES // (4 * shape.vocab_size))
        self._head_choice = HeadChoice()
        lm_head = self._model.lm_head
        self._has_plain_head = (
            self._ops.greedy_head is not None
            and type(lm_head) is nn.Linear
            and getattr(lm_head, "bias", None) is None
        )
        self._heads = AttentionHeads(
            num_groups=shape.num_heads // shape.num_kv_heads,
            num_kv_heads=shape.num_kv_heads,
            head_dim=shape.head_dim,
        )
        self._taps: Taps | None = None
        self._features: dict[int, Tensor] = {}
        self._drafter_kvs: tuple[PagedKV, ...] = ()
        self._graphs: CudaGraphs | None = None
        self._known_graphs: MachineFile | None = None
        # Layers of other weight formats may ask the host for something, which no graph can hold.
        can_capture = is_fused and not is_quantised(self._model)
        if can_capture and self._device.type == "cuda" and config.use_cuda_graphs:
            self._graphs = self._make_graphs(config, max_position=shape.max_position)
            if config.step_cost_dir is not None:
                self._known_graphs = MachineFile(config.step_cost_dir, captured=1, **self.identity)

    def _count_blocks(self, config: EngineConfig, kv_bytes_per_token: int) -> int:
        """How many blocks the KV cache has."""
        free_bytes = None
        if self._device.type == "cuda":
            free_bytes = int(torch.cuda.mem_get_info(self._device)[0])
        return resolve_num_blocks(
            resolve_kv_memory(
                config.kv_memory_bytes,
                free_bytes=free_bytes,
                kv_bytes_per_token=kv_bytes_per_token,
            ),
            kv_bytes_per_token=kv_bytes_per_token,
            block_size=self._block_size,
        )

    def _make_graphs(self, config: EngineConfig, *, max_position: int) -> CudaGraphs:
        return CudaGraphs(
            self._decode,
            self._verify,
            heads=self._heads,
            limits=GraphLimits(
                max_rows=self._max_rows,
                max_requests=config.scheduler.max_running,
                max_context=min(max_position, self.model_info.num_kv_tokens),
                block_size=self._block_size,
                max_head_rows=self._max_rows if self._has_plain_head else self._max_logits_rows,
            ),
            device=self._device,
        )

    @property
    def num_graphs(self) -> int:
        """The number of captured step sizes."""
        return self._graphs.num_graphs if self._graphs is not None else 0

    @property
    def num_graph_steps(self) -> int:
        """The number of steps that ran as a captured graph."""
        return self._graphs.num_replays if self._graphs is not None else 0

    @property
    def head_choice(self) -> HeadChoice:
        """For which numbers of rows greedy steps leave the logits out."""
        return self._head_choice

    def _make_transfer(self, *of_drafters: PagedKV) -> KVTransfer | None:
        """The way to the lower tiers of the prefix cache, if there are any."""
        cache = self._config.cache
        if not cache.memory_bytes:
            if cache.redis_url is not None:
                raise CacheConfigError(
                    "the cache memory is 0 bytes, and values from Redis go through this memory;"
                    " give it some, such as 256MiB, or leave the Redis URL out"
                )
            return None
        if cache.chunk_tokens < 1 or cache.chunk_tokens % self._block_size:
            raise CacheConfigError(
                f"a chunk of the cache has {cache.chunk_tokens} tokens; take a multiple of"
                f" {self._block_size}"
            )
        chunk_blocks = cache.chunk_tokens // self._block_size
        return self._transfer_of(*of_drafters, chunk_blocks=chunk_blocks, payload=cache.payload)

    def _transfer_of(
        self, *of_drafters: PagedKV, chunk_blocks: int, payload: CachePayload
    ) -> KVTransfer:
        return KVTransfer(self._paged_kv, *of_drafters, chunk_blocks=chunk_blocks, payload=payload)

    def _make_namespace(self) -> bytes:
        """What keys in shared tiers begin with; for a process alone weights are not read."""
        config = self._config
        if config.cache.redis_url is None:
            return b"this process"
        return kv_namespace(
            config.model_path,
            dtype=config.dtype,
            device=config.device,
            computed_by=self.computed_by,
            block_size=config.scheduler.block_size,
            chunk_tokens=config.cache.chunk_tokens,
            payload=config.cache.payload,
            drafter_paths=[one.path for one in config.drafters if one.path is not None],
        )

    @property
    def computed_by(self) -> dict[str, str]:
        """Everything beside the model that decides the bits of what is computed."""
        if self.row_bits is None:
            return {"torch": torch.__version__, "gpu": torch.cuda.get_device_name(self._device)}
        return {
            "torch": torch.__version__,
            "instruction_set": self.row_bits.instruction_set,
            "linear_rows": self.row_bits.linear,
            "attention_rows": self.row_bits.attention,
            "row_bits": self.row_bits.digest,
        }

    def execute(self, plan: StepPlan) -> StepResult:
        """Compute every row of the plan and verify its drafts."""
        return self.launch(plan).wait()

    @torch.inference_mode()
    def launch(self, plan: StepPlan) -> PendingStep:
        """Give a step to the device; on the CPU it is computed on return.

        Another one may be under way; the device computes them in their order.
        """
        if self._device.type != "cuda":
            began = time.perf_counter()
            outcome, batch = self._compute(plan)
            result = read_outcome(outcome.numpy(), plan, batch)
            return FinishedStep(result, time.perf_counter() - began, self._take_features())
        started = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        started.record()
        outcome, batch = self._compute(plan)
        return DeviceStep(
            outcome,
            lambda numbers: read_outcome(numbers, plan, batch),
            started=started,
            features=self._take_features(),
        )

    def _compute(self, plan: StepPlan) -> tuple[Tensor, ForwardBatch]:
        """The outcome of a step on the device, and its batch on the host."""
        batch = ForwardBatch.from_plan(
            plan,
            block_size=self._block_size,
            max_logits_rows=self._max_logits_rows,
            splits_greedy=not self._has_plain_head,
        )
        if self._graphs is not None:
            outcome = self._graphs.try_outcome(batch)
            if outcome is not None:
                return outcome, batch
        rows, verified = self._hidden_rows(batch)
        outcomes = [self._verify(rows[part.start : part.stop], part) for part in verified]
        if self._taps is not None and self._taps.has_candidates:
            self._taps.add_candidates(
                self._features, batch.logits_rows.to(self._device), batch.input_ids.shape[0]
            )
        return join_outcomes(outcomes, self._device), batch

    def _verify(self, rows: Tensor, part: VerifiedRows) -> Tensor:
        """The outcome of some rows. rows: [num_rows, hidden_size]"""
        greedy_head = self._ops.greedy_head
        if greedy_head is None or self._wants_logits(part) or not self._has_plain_head:
            logits = compute_logits(self._model, rows)
            if self._taps is not None and self._taps.has_candidates:
                self._taps.see(logits)
            return verify_logits(logits, part, ops=self._ops)
        weight = cast(Tensor, cast(nn.Module, self._model.lm_head).weight)
        verification = greedy_head(
            rows,
            weight,
            part.draft_token_ids,
            cu_rows=part.cu_rows,
            writes_logits=not self._head_choice.is_fused(rows.shape[0]),
        )
        return pack_outcome(verification, is_number=rows.isfinite().all(dim=1))

    def _wants_logits(self, part: VerifiedRows) -> bool:
        """True if somebody needs more of the logits than their argmax."""
        has_candidates = self._taps is not None and self._taps.has_candidates
        return part.wants_logits or has_candidates

    def _hidden_rows(self, batch: ForwardBatch) -> tuple[Tensor, tuple[VerifiedRows, ...]]:
        """Hidden rows [num_rows, hidden_size] of `logits_rows`, in a graph where there is one.

        With them, what verification reads, on the device.
        """
        if self._device.type == "cpu":
            return self._decode(batch)[batch.logits_rows], batch.verified
        if self._graphs is not None:
            rows = self._graphs.try_hidden(batch)
            if rows is not None:
                return rows, self._staging.send(batch.verified)
        batch = self._staging.send(batch.with_work(self._heads))
        return self._decode(batch)[batch.logits_rows], batch.verified

    def measure_costs(self, *, budget_s: float | None = None) -> StepCosts:
        """Measure the costs of steps on this machine, before the cache holds keys of requests.

        `budget_s` None takes what a start may take longer for it. On a GPU the graphs of these
        steps are captured meanwhile, while the time lasts: else the time of their kernels' launches
        would be measured.
        """
        if budget_s is None:
            budget_s = _MEASURING_S if self._graphs is None else _CAPTURING_S
        num_tries = 2 if self._graphs is None else 2 + USES_BEFORE_CAPTURE
        plans = StepPlans(
            num_blocks=self.num_blocks,
            block_size=self._block_size,
            max_rows=self._max_rows,
            max_context=self.model_info.max_position,
        )
        return measure_step_costs(self.execute, plans, budget_s=budget_s, num_tries=num_tries)

    @property
    def identity(self) -> dict[str, object]:
        """Values on which the time of a step depends, besides the processor."""
        return {
            "model": self.model_info.fingerprint,
            "dtype": self.model_info.dtype,
            "device": self._device.type,
            "threads": torch.get_num_threads(),
            "graphs": self._graphs is not None,
            "block_size": self._block_size,
            **self.computed_by,
        }

    @property
    def target(self) -> TargetModel:
        """What drafters may use of the model."""
        return TargetModel(
            model=self._model,
            shape=self._shape,
            ops=self._ops,
            dtype=self._paged_kv.keys.dtype,
            device=self._device,
            num_blocks=self.num_blocks,
            block_size=self._block_size,
            paged_kv=self._paged_kv,
        )

    def attach(self, drafters: Sequence[Drafter]) -> None:
        """Keep the hidden rows that drafters read, in each step from now on.

        Their keys and values go to the lower tiers of the prefix cache with the model's. If they
        read any rows, steps on a GPU are computed without graphs. Raises ModelLoadError.
        """
        layers = {tap for drafter in drafters for tap in drafter.taps}
        if layers:
            self._taps, self._graphs = Taps(self._model, layers), None
        self._drafter_kvs = tuple(one.kv for one in drafters if one.kv is not None)
        self.kv_transfer = self._make_transfer(*self._drafter_kvs)

    def _take_features(self) -> dict[int, Tensor]:
        features, self._features = self._features, {}
        return features

    def _decode(self, batch: ForwardBatch) -> Tensor:
        hidden = run_decoder(self._model, batch, paged_kv=self._paged_kv, ops=self._ops)
        if batch.shared is not None:
            # A branch that wins keeps its blocks, so what drafters know of its first one goes too.
            for paged_kv in self._drafter_kvs:
                paged_kv.copy_blocks(batch.shared.copied_from, batch.shared.copied_to)
        if self._taps is not None:
            self._features = self._taps.take(hidden)
        return hidden

    @torch.inference_mode()
    def warm_up(self) -> None:
        """Run one token through block 0, so that the first request pays for no initialisation.

        On a GPU the faster way through the head is found and the first graphs are captured, too.
        """
        if self._device.type == "cuda":
            self.measure_head()
        if self._graphs is not None:
            known = None
            if self._known_graphs is not None:
                known = self._known_graphs.load(
                    lambda content: read_graph_keys(content["most_used"])
                )
            self._graphs.capture_first(known or ())
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

    def keep_figures(self) -> None:
        """Store for the next start which graphs are used most."""
        if self._graphs is not None and self._known_graphs is not None:
            keys = [(key.num_rows, key.has_head) for key in self._graphs.most_used]
            self._known_graphs.store({"most_used": keys})

    @torch.inference_mode()
    def measure_head(self, time_ms: TimeMs | None = None) -> HeadChoice:
        """Find out for which numbers of rows greedy steps go past the logits; they do from now on.

        `time_ms` None takes the clock of the CUDA device.
        """
        if self._has_plain_head:
            weight = cast(Tensor, cast(nn.Module, self._model.lm_head).weight)
            self._head_choice = measure_head_choice(
                weight, ops=self._ops, max_rows=self._max_rows, time_ms=time_ms
            )
        return self._head_choice


def _load(config: EngineConfig, device: torch.device) -> DeviceModel:
    """The model of a configuration, tried once on a machine. Raises ModelLoadError."""
    fingerprint = fingerprint_model(config.model_path)
    dtype = torch_dtype(config.dtype)
    kept = None
    if config.step_cost_dir is not None:
        kept = MachineFile(
            config.step_cost_dir,
            probe=PROBE_VERSION,
            model=fingerprint,
            dtype=dtype,
            device=device.type,
            torch=torch.__version__,
            transformers=version("transformers"),
        )
    is_known = kept is not None and kept.load(lambda content: bool(content["probe"]))
    probe = None
    if not is_known:
        probe = partial(probe_model, dtype=dtype, ops=select_ops(device))
    model, shape = load_model(config.model_path, dtype=config.dtype, device=device, probe=probe)
    if kept is not None and not is_known:
        kept.store({"probe": True})
    return DeviceModel(model, shape, fingerprint)


def _fuse(model: nn.Module, fused: FusedOps) -> bool:
    # Knows several families by their classes, whose import a start on the CPU need not wait for.
    from batching.model.fused_layers import fuse_decoder

    return fuse_decoder(model, fused)
