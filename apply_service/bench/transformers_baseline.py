"""Transformers' own `generate` on the same weights and prompts: the rival of `bench speed`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

from apply_service.bench.speed_run import SpeedRun


class TransformersBaseline:
    """A second copy of the model with transformers' default attention, in float32 on the CPU."""

    def __init__(self, model_dir: Path) -> None:
        self._model = AutoModelForCausalLM.from_pretrained(model_dir, dtype=torch.float32).eval()

    def run(
        self,
        prompt_token_ids: Sequence[int],
        *,
        max_tokens: int,
        stop_token_ids: Sequence[int],
        num_lookup_tokens: int | None = None,
    ) -> SpeedRun:
        """Greedy decoding; with `num_lookup_tokens`, prompt lookup with drafts of that length."""
        inputs = torch.tensor([list(prompt_token_ids)])
        started = time.perf_counter()
        output = self._model.generate(
            inputs,
            attention_mask=torch.ones_like(inputs),
            max_new_tokens=max_tokens,
            do_sample=False,
            eos_token_id=list(stop_token_ids),
            pad_token_id=stop_token_ids[0],
            prompt_lookup_num_tokens=num_lookup_tokens,
        )
        seconds = time.perf_counter() - started
        token_ids = tuple(int(token) for token in output[0, inputs.shape[1] :])
        return SpeedRun(token_ids=token_ids, seconds=seconds)
