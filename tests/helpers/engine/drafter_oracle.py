"""Feeds drafters with random hidden rows, without an engine, and takes their greedy chains."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from batching.config import DrafterConfig, EngineConfig
from batching.drafters.drafter import DraftAsk, Drafter, ObservedRequest
from batching.drafters.registry import make_drafters
from batching.drafters.target import TargetModel
from batching.model.runner import ModelRunner
from batching.request import SamplingParams

NUM_TEXTS = 200
MAX_ROWS = 40
MAX_DEPTH = 8
# Where an oracle adds up in another order, a near tie may fall the other way.
MIN_EQUAL = 0.999


@dataclass(frozen=True, slots=True)
class Text:
    """Tokens, and the rows [num_tokens - 1, hidden_size] of each tap for all but the last one."""

    token_ids: Sequence[int]
    rows: Mapping[int, Tensor]
    block_ids: Sequence[int]

    @property
    def num_rows(self) -> int:
        """The tokens that have been computed."""
        return len(self.token_ids) - 1


def make_target(model_dir: Path) -> TargetModel:
    """The model as drafters see it, with a cache of its own."""
    return ModelRunner(EngineConfig(model_path=model_dir, kv_memory_bytes=4 << 20)).target


def embedding_weight(model_dir: Path) -> Tensor:
    """The model's embeddings [vocab_size, hidden_size], from its file."""
    weights: dict[str, Tensor] = load_file(model_dir / "model.safetensors")
    return weights["model.embed_tokens.weight"]


def load_drafter(
    kind: str,
    checkpoint: tuple[dict[str, Any], dict[str, Tensor]],
    target: TargetModel,
    *,
    folder: Path,
    file_name: str = "model.safetensors",
) -> Drafter:
    """The drafter of a configuration and weights, written to a folder and read again."""
    config, weights = checkpoint
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    if file_name.endswith(".safetensors"):
        save_file(weights, folder / file_name)
    else:
        torch.save(weights, folder / file_name)
    (drafter,) = make_drafters([DrafterConfig(kind=kind, path=folder)], target)
    return drafter


def random_texts(target: TargetModel, taps: Sequence[int], *, seed: int = 0) -> list[Text]:
    """Texts of random tokens and rows, each with blocks for `MAX_DEPTH` tokens more."""
    chosen, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    free_ids = chosen.sample(range(target.num_blocks), target.num_blocks)
    texts = []
    for _ in range(NUM_TEXTS):
        num_rows = chosen.randint(1, MAX_ROWS)
        num_blocks = -(-(num_rows + 1 + MAX_DEPTH) // target.block_size)
        size = (num_rows, target.shape.hidden_size)
        texts.append(
            Text(
                chosen.choices(range(target.shape.vocab_size), k=num_rows + 1),
                {tap: torch.randn(size, generator=generator) for tap in taps},
                [free_ids.pop() for _ in range(num_blocks)],
            )
        )
    return texts


def drafted_chains(drafter: Drafter, texts: Sequence[Text]) -> list[list[int]]:
    """The likeliest ways behind texts, however unlikely, all drafted at once.

    The rows come in two passes; the first one has none of a text of a single row.
    """
    halves = [text.num_rows // 2 for text in texts]
    with pytest.MonkeyPatch.context() as patch, torch.inference_mode():
        patch.setattr("batching.drafters.growth.MIN_WORTH", 0.0)
        _observe(drafter, texts, [range(half) for half in halves])
        _observe(
            drafter,
            texts,
            [range(half, text.num_rows) for half, text in zip(halves, texts, strict=True)],
        )
        drafts = drafter.draft([_ask(index, text) for index, text in enumerate(texts)])
    return [list(draft.token_ids) for draft in drafts]


def share_equal(chains: Sequence[Sequence[int]], expected: Sequence[Sequence[int]]) -> float:
    """The share of tokens that are equal; chains must have the same lengths."""
    pairs = [
        pair
        for chain, other in zip(chains, expected, strict=True)
        for pair in zip(chain, other, strict=True)
    ]
    return sum(one == other for one, other in pairs) / len(pairs)


def _observe(drafter: Drafter, texts: Sequence[Text], spans: Sequence[range]) -> None:
    requests, first = [], 0
    for index, (text, span) in enumerate(zip(texts, spans, strict=True)):
        if not span:
            continue
        requests.append(
            ObservedRequest(
                request_id=str(index),
                rows=range(first, first + len(span)),
                start=span.start,
                token_ids=[text.token_ids[at] for at in span],
                next_token_ids=[text.token_ids[at + 1] for at in span],
                block_ids=text.block_ids,
            )
        )
        first += len(span)
    features = {
        tap: torch.cat(
            [
                text.rows[tap][span.start : span.stop]
                for text, span in zip(texts, spans, strict=True)
            ]
        )
        for tap in drafter.taps
    }
    drafter.observe(requests, features)


def _ask(index: int, text: Text) -> DraftAsk:
    return DraftAsk(
        request_id=str(index),
        token_ids=text.token_ids,
        num_prompt_tokens=1,
        block_ids=text.block_ids,
        sampling=SamplingParams(max_tokens=100),
        max_nodes=64,
        max_depth=MAX_DEPTH,
    )
