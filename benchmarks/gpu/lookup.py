"""Transformers' prompt lookup on the same random weights: one request, acceptance forced.

The prompt is random tokens, and the answer is told: a processor of logits makes the model write a
copy of the prompt's beginning, wrong where drafts of the trace break off. Prompt lookup finds its
drafts in the prompt as it does in a real edit, and every pass computes what it would there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

NUM_LOOKUP_TOKENS = (10, 64)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupTimes:
    """Prompt lookup with drafts of `k`: tokens written after the first one, and their seconds."""

    k: int
    num_tokens: int
    num_passes: int
    seconds: float

    @property
    def tokens_per_s(self) -> float:
        """Tokens a second, the reading of the prompt left out."""
        return self.num_tokens / self.seconds


def make_answer(prompt: Sequence[int], trace: Sequence[float], *, k: int, length: int) -> list[int]:
    """A copy of the prompt's first tokens with another token wherever a draft of `k` breaks off."""
    answer = list(prompt[:length])
    position = 0
    for share in (trace[at % len(trace)] for at in range(length)):
        position += round(k * share)
        if position >= length:
            break
        if share < 1.0:
            answer[position] = prompt[position] ^ 1
        position += 1
    return answer


def measure_lookup(
    model: nn.Module, *, k: int, context: int, num_tokens: int, trace: Sequence[float]
) -> LookupTimes:
    """Time `generate` with prompt lookup behind `context` tokens, at least two of them.

    The time of writing a single token, which is mostly that of reading the prompt, is taken off.
    """
    device = next(model.parameters()).device
    vocab_size = int(model.config.vocab_size)  # type: ignore[union-attr, arg-type]
    generator = torch.Generator().manual_seed(0)
    prompt = torch.randint(vocab_size & ~1, (context,), generator=generator).tolist()
    num_tokens = min(num_tokens, context)
    answer = make_answer(prompt, trace, k=k, length=num_tokens)
    passes = _PassCounter(model)
    try:

        def run(length: int) -> float:
            inputs = torch.tensor([prompt], device=device)
            _wait(device)
            started = time.perf_counter()
            output = model.generate(  # type: ignore[operator]
                inputs,
                attention_mask=torch.ones_like(inputs),
                max_new_tokens=length,
                min_new_tokens=length,
                do_sample=False,
                pad_token_id=0,
                prompt_lookup_num_tokens=k,
                logits_processor=[_Teller(answer, context)],
            )
            _wait(device)
            seconds = time.perf_counter() - started
            assert output[0, context:].tolist() == answer[:length]
            return seconds

        run(2)
        first_s = run(2)
        passes.count = 0
        seconds = run(num_tokens)
        return LookupTimes(
            k=k,
            num_tokens=num_tokens - 2,
            num_passes=passes.count - 1,
            seconds=max(seconds - first_s, 1e-9),
        )
    finally:
        passes.remove()


class _Teller:
    """Makes the told answer certain, whatever the weights say."""

    def __init__(self, answer: Sequence[int], num_prompt_tokens: int) -> None:
        self._answer = answer
        self._num_prompt_tokens = num_prompt_tokens

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """input_ids: [1, num_tokens]; scores: [1, vocab_size]. Returns scores of the same shape."""
        position = input_ids.shape[1] - self._num_prompt_tokens
        told = torch.full_like(scores, -1e4)
        told[:, self._answer[min(position, len(self._answer) - 1)]] = 0.0
        return told


class _PassCounter:
    """Counts the forward passes of a model."""

    def __init__(self, model: nn.Module) -> None:
        self.count = 0
        handle = model.register_forward_hook(self._note)
        self.remove: Callable[[], None] = handle.remove

    def _note(self, *_arguments: Any) -> None:
        self.count += 1


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
