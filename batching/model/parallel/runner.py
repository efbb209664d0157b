"""A rank as a model runner: its slices, its part of the cache, and the steps that all take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn

from batching.cache.kv_transfer import KVTransfer
from batching.config import CachePayload, EngineConfig
from batching.drafters.target import TargetModel
from batching.errors import ModelLoadError
from batching.fingerprint import fingerprint_model
from batching.model.forward_batch import ForwardBatch, VerifiedRows
from batching.model.loading import PagedKV, compute_logits
from batching.model.parallel.crew import Crew
from batching.model.parallel.frames import (
    Array,
    CopyIn,
    CopyOut,
    Embed,
    Head,
    LeadFrame,
    Step,
)
from batching.model.parallel.layers import VocabParallelHead
from batching.model.parallel.loading import ModelSlices, load_slices, read_divided_config
from batching.model.parallel.rank_group import RankGroup
from batching.model.runner import DeviceModel, ModelRunner
from batching.model.verifier import pack_outcome
from batching.step_plan import StepPlan
from kernels.verification import Verification, count_accepted


class RankRunner(ModelRunner):
    """One of the ranks, with the heads that it has for all heads there are."""

    def __init__(self, config: EngineConfig, group: RankGroup, slices: ModelSlices) -> None:
        """All ranks make theirs at the same time."""
        self._group = group
        self._whole, self._whole_config = slices.whole, slices.config
        super().__init__(
            # No graph was ever captured around an exchange.
            replace(config, num_threads=_threads_of_rank(config), use_cuda_graphs=False),
            loaded=DeviceModel(slices.model, slices.shape, fingerprint_model(config.model_path)),
        )
        self.model_info = replace(
            self.model_info,
            num_parameters=slices.num_parameters,
            kv_bytes_per_token=group.size * self.model_info.kv_bytes_per_token,
        )

    @property
    def computed_by(self) -> dict[str, str]:
        """As of one process, and the number of ranks: they add up in another order."""
        return {**super().computed_by, "ranks": str(self._group.size)}

    @torch.inference_mode()
    def follow(self, frame: LeadFrame) -> None:
        """Do this rank's part of what the lead tells all ranks and does itself."""
        if isinstance(frame, Step):
            rows, _ = self._hidden_rows(frame.batch())
            for start, stop, wants_logits in frame.parts:
                if wants_logits:
                    compute_logits(self._model, rows[start:stop])
                else:
                    self._head.best(rows[start:stop])
        elif isinstance(frame, Embed):
            self._embeddings(frame.token_ids.tensor().to(self._device))
        elif isinstance(frame, Head):
            self._head(frame.rows.tensor().to(self._device))
        elif isinstance(frame, CopyOut | CopyIn):
            self._follow_copy(frame)

    def _follow_copy(self, frame: CopyOut | CopyIn) -> None:
        assert self.kv_transfer is not None, "the lead has tiers only if all ranks have"
        payload = torch.empty(self.kv_transfer.payload_bytes, dtype=torch.uint8)
        view = memoryview(payload.numpy())  # type: ignore[arg-type]
        if isinstance(frame, CopyOut):
            self.kv_transfer.copy_out(frame.block_ids, view)
            self._group.gather(payload)
        else:
            self._group.scatter((), payload)
            self.kv_transfer.copy_in(frame.block_ids, view, first_block=frame.first_block)

    def _count_blocks(self, config: EngineConfig, kv_bytes_per_token: int) -> int:
        return self._group.least(super()._count_blocks(config, kv_bytes_per_token))

    @property
    def _head(self) -> VocabParallelHead:
        return cast(VocabParallelHead, self._model.lm_head)

    @property
    def _embeddings(self) -> nn.Module:
        return cast(nn.Module, cast(nn.Module, self._model.model).embed_tokens)


class LeadRunner(RankRunner):
    """The rank that is given plans. It tells them to the others, and verifies."""

    def __init__(
        self, config: EngineConfig, group: RankGroup, slices: ModelSlices, crew: Crew
    ) -> None:
        self._crew = crew
        super().__init__(config, group, slices)

    @property
    def crew(self) -> Crew:
        """The other ranks."""
        return self._crew

    @property
    def target(self) -> TargetModel:
        """As of one process, except that the model is its embeddings and its head alone."""
        model = _AskedModel(self._whole_config, self._embeddings, self._head, self._crew)
        return replace(super().target, model=model, shape=self._whole)

    def _compute(self, plan: StepPlan) -> tuple[Tensor, ForwardBatch]:
        with self._crew.in_step():
            return super()._compute(plan)

    def _hidden_rows(self, batch: ForwardBatch) -> tuple[Tensor, tuple[VerifiedRows, ...]]:
        self._crew.tell(Step.of(batch, [self._wants_logits(part) for part in batch.verified]))
        return super()._hidden_rows(batch)

    def _verify(self, rows: Tensor, part: VerifiedRows) -> Tensor:
        if self._wants_logits(part):
            return super()._verify(rows, part)
        largest, token_ids = self._head.best(rows)
        num_accepted = count_accepted(token_ids, part.draft_token_ids, part.cu_rows)
        return pack_outcome(Verification(token_ids, num_accepted), is_number=largest.isfinite())

    def _transfer_of(
        self, *of_drafters: PagedKV, chunk_blocks: int, payload: CachePayload
    ) -> KVTransfer:
        of_rank = super()._transfer_of(chunk_blocks=chunk_blocks, payload=payload)
        return _RanksTransfer(
            self._paged_kv,
            *of_drafters,
            chunk_blocks=chunk_blocks,
            payload=payload,
            rank_bytes=of_rank.payload_bytes,
            group=self._group,
            crew=self._crew,
        )


class _RanksTransfer(KVTransfer):
    """A payload of all ranks: the lead's, with those of drafters, then the others' in order."""

    def __init__(
        self,
        *paged_kvs: PagedKV,
        chunk_blocks: int,
        payload: CachePayload,
        rank_bytes: int,
        group: RankGroup,
        crew: Crew,
    ) -> None:
        """rank_bytes: what each of the other ranks has"""
        super().__init__(*paged_kvs, chunk_blocks=chunk_blocks, payload=payload)
        self._own_bytes = super().payload_bytes
        self._rank_bytes = rank_bytes
        self._group = group
        self._crew = crew

    @property
    def payload_bytes(self) -> int:
        """Length of a chunk's payload."""
        return self._own_bytes + (self._group.size - 1) * self._rank_bytes

    @torch.inference_mode()
    def copy_out(self, block_ids: Sequence[int], payload: memoryview) -> None:
        """Write the blocks of one chunk to host memory; complete on return."""
        with self._crew.in_step():
            self._crew.tell(CopyOut(tuple(block_ids)))
            super().copy_out(block_ids, payload)
            parts = self._group.gather(torch.zeros(self._rank_bytes, dtype=torch.uint8))
            self._of_others(payload).copy_(parts[1:].flatten())

    @torch.inference_mode()
    def copy_in(self, block_ids: Sequence[int], payload: memoryview, *, first_block: int) -> None:
        """Fill blocks with a chunk's blocks from `first_block` on; complete on return."""
        with self._crew.in_step():
            self._crew.tell(CopyIn(tuple(block_ids), first_block))
            nothing = torch.zeros(self._rank_bytes, dtype=torch.uint8)
            parts = torch.split(self._of_others(payload), self._rank_bytes)
            self._group.scatter([nothing, *parts], nothing.clone())
            super().copy_in(block_ids, payload, first_block=first_block)

    def _of_others(self, payload: memoryview) -> Tensor:
        return torch.frombuffer(payload, dtype=torch.uint8)[self._own_bytes : self.payload_bytes]


class _AskedModel(nn.Module):
    """What drafters use of a model between its steps: each call is made by all ranks."""

    def __init__(self, config: object, embeddings: nn.Module, head: nn.Module, crew: Crew):
        super().__init__()
        self.config = config
        self.model = nn.Module()
        self.model.embed_tokens = _Asked(embeddings, lambda ids: Embed(Array.of(ids)), crew)
        self.lm_head = _Asked(head, lambda rows: Head(Array.of(rows)), crew)


class _Asked(nn.Module):
    """A module that is called on all ranks."""

    def __init__(self, module: nn.Module, ask: Callable[[Tensor], LeadFrame], crew: Crew) -> None:
        super().__init__()
        self._module = module
        self._ask = ask
        self._crew = crew

    def forward(self, inputs: Tensor) -> Tensor:
        """What the lead's module gives; `inputs` are sent to the other ranks."""
        with self._crew.in_step():
            self._crew.tell(self._ask(inputs))
            return cast(Tensor, self._module(inputs))


def start_ranks(config: EngineConfig) -> LeadRunner:
    """The lead of as many ranks as `config.tensor_parallel`, each of which holds its part.

    Raises ModelLoadError for a model that so many cannot share.
    """
    num_ranks = config.tensor_parallel
    read_divided_config(config.model_path, dtype=config.dtype, num_ranks=num_ranks)
    if config.device == "cuda" and torch.cuda.device_count() < num_ranks:
        raise ModelLoadError(
            f"{num_ranks} ranks need a GPU each, and there are {torch.cuda.device_count()}; lower"
            " tensor_parallel"
        )
    crew = Crew(config)
    with crew.loading():
        group, slices = join_ranks(config, rank=0, meeting=crew.meeting)
        return LeadRunner(config, group, slices, crew)


def join_ranks(config: EngineConfig, *, rank: int, meeting: Path) -> tuple[RankGroup, ModelSlices]:
    """Meet the other ranks, then load this one's part. Raises ModelLoadError or RuntimeError."""
    if config.device == "cuda":
        torch.cuda.set_device(rank)
    device = torch.device(config.device)
    group = RankGroup(rank, config.tensor_parallel, meeting=meeting, device=device)
    return group, load_slices(config.model_path, dtype=config.dtype, device=device, group=group)


def _threads_of_rank(config: EngineConfig) -> int:
    """On a CPU the ranks share the cores."""
    return config.num_threads or max(1, torch.get_num_threads() // config.tensor_parallel)
