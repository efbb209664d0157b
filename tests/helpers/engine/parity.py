"""Compares two runs of the same requests token by token; differences must be near-ties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

NEAR_TIE_GAP = 1e-3
MAX_DIFFERENCE_RATE = 1e-4


@dataclass(frozen=True)
class Difference:
    """The first difference of two runs: position, both tokens, gap of the top two logits."""

    case: int
    position: int
    token_ids: tuple[int, int]
    gap: float


def find_differences(
    model_dir: Path,
    prompts: Sequence[Sequence[int]],
    left: Sequence[Sequence[int]],
    right: Sequence[Sequence[int]],
) -> list[Difference]:
    """The first difference of each case, its gap computed by transformers' own forward pass."""
    differences = []
    model = None
    for case, (prompt, ours, theirs) in enumerate(zip(prompts, left, right, strict=True)):
        if list(ours) == list(theirs):
            continue
        position = next(
            (i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b),
            min(len(ours), len(theirs)),
        )
        pair = (ours[position : position + 1], theirs[position : position + 1])
        assert all(pair), f"case {case}: one run ended at {position}, the other went on"
        if model is None:
            model = AutoModelForCausalLM.from_pretrained(model_dir, dtype=torch.float32)
        with torch.inference_mode():
            logits = model(torch.tensor([[*prompt, *ours[:position]]])).logits[0, -1]
        top = logits.topk(2).values
        differences.append(
            Difference(case, position, (pair[0][0], pair[1][0]), float(top[0] - top[1]))
        )
    return differences


def check_parity(
    model_dir: Path,
    prompts: Sequence[Sequence[int]],
    left: Sequence[Sequence[int]],
    right: Sequence[Sequence[int]],
) -> list[Difference]:
    """Raise AssertionError unless every difference is a near-tie and they are rare enough."""
    differences = find_differences(model_dir, prompts, left, right)
    num_tokens = sum(map(len, left))
    clear = [difference for difference in differences if difference.gap >= NEAR_TIE_GAP]
    assert not clear, f"differences that are no near-ties: {clear}"
    assert len(differences) <= max(1, num_tokens * MAX_DIFFERENCE_RATE), differences
    return differences
