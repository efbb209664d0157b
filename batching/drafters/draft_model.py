"""A draft model: a smaller language model with the same tokens.

Source: Leviathan et al., "Fast Inference from Transformers via Speculative Decoding", ICML 2023,
arXiv 2211.17192.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import cast

from batching.config import Dtype
from batching.drafters.drafter import DraftAsk, Features, ObservedRequest
from batching.drafters.model_chain import ModelChain
from batching.drafters.own_layers import RowRun
from batching.drafters.target import TargetModel
from batching.errors import ModelLoadError
from batching.model.loading import load_model
from batching.model.model_probe import probe_model
from lookup.proposer import Draft


class DraftModel:
    """A model from a folder as transformers stores it, of any family that can be served.

    It computes in the numbers of the target, each token of each text once, and each drafted one.
    """

    name = "draft-model"
    taps: Sequence[int] = ()

    def __init__(self, target: TargetModel, path: Path) -> None:
        """Raises ModelLoadError if the model cannot be loaded or has other tokens."""
        dtype = cast(Dtype, str(target.dtype).removeprefix("torch."))
        probe = partial(probe_model, dtype=target.dtype, ops=target.ops)
        model, shape = load_model(path, dtype=dtype, device=target.device, probe=probe)
        if shape.vocab_size != target.shape.vocab_size:
            raise ModelLoadError(
                f"the draft model {path} has {shape.vocab_size} tokens, and the model"
                f" {target.shape.vocab_size}; take one with the same tokenizer, or the drafter"
                " other-tokenizer"
            )
        if target.ops.fused is not None:
            # Knows families by their classes, whose import a start on the CPU need not wait for.
            from batching.model.fused_layers import fuse_decoder

            fuse_decoder(model, target.ops.fused)
        self.kv = target.make_kv(
            num_layers=shape.num_layers, num_kv_heads=shape.num_kv_heads, head_dim=shape.head_dim
        )
        self._chain = ModelChain(model, self.kv, target=target, shape=shape)

    def observe(self, requests: Sequence[ObservedRequest], features: Features) -> None:
        """Compute keys and values of the rows that hold."""
        self._chain.compute([RowRun(one.token_ids, one.start, one.block_ids) for one in requests])

    def draft(self, asks: Sequence[DraftAsk]) -> list[Draft]:
        """The trees that the model grows behind the texts."""
        return self._chain.draft(asks, reference=self.name)

    def forget(self, request_id: str) -> None:
        """Nothing is kept by request but keys and values, and they go with its blocks."""
