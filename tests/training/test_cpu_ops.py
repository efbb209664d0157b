"""Training's own attention and cross entropy: values and gradients against torch's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from transformers import AutoModelForCausalLM

from training.cpu_ops import ATTENTION_NAME, summed_cross_entropy

pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")


def gradients(model: Any, token_ids: list[int]) -> list[Tensor]:
    """Of a weighted sum of the last hidden states."""
    hidden = model.model(input_ids=torch.tensor([token_ids])).last_hidden_state
    weights = torch.arange(hidden.numel()).view_as(hidden).float().sin()
    return list(torch.autograd.grad((hidden * weights).sum(), list(model.model.parameters())))


@pytest.mark.parametrize("length", [1, 2, 255, 256, 257, 700])
def test_attention_gives_the_gradients_of_torch(tiny_model_dir: Path, length: int) -> None:
    token_ids = torch.randint(3, 259, [length], generator=torch.Generator().manual_seed(length))
    found = [
        gradients(
            AutoModelForCausalLM.from_pretrained(tiny_model_dir, attn_implementation=name),
            token_ids.tolist(),
        )
        for name in (ATTENTION_NAME, "sdpa")
    ]
    # Some gradients are nothing but what rounding leaves of larger ones.
    scale = max(float(expected.abs().max()) for expected in found[1])
    for ours, expected in zip(*found, strict=True):
        tolerance = 1024 * torch.finfo(ours.dtype).eps * scale
        assert (ours - expected).abs().max() <= tolerance


def test_examples_that_share_a_pass_do_not_see_each_other(tiny_model_dir: Path) -> None:
    token_ids = [5, 9, 7, 5, 9, 7]
    position_ids = torch.tensor([[0, 1, 2, 0, 1, 2]])
    model = AutoModelForCausalLM.from_pretrained(tiny_model_dir, attn_implementation=ATTENTION_NAME)
    hidden = model.model(
        input_ids=torch.tensor([token_ids]), position_ids=position_ids, use_cache=False
    ).last_hidden_state[0]
    assert torch.allclose(hidden[:3], hidden[3:], atol=64 * torch.finfo(hidden.dtype).eps)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("num_rows", [1, 31, 32, 33, 100])
def test_cross_entropy_and_its_gradient(num_rows: int, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(num_rows)
    logits = (20 * torch.randn(num_rows, 301, generator=generator)).to(dtype).requires_grad_()
    truth = torch.randint(0, 301, [num_rows], generator=generator)
    loss = 0.3 * summed_cross_entropy(logits, truth)
    expected = 0.3 * functional.cross_entropy(logits.double(), truth, reduction="sum")
    assert loss.dtype == torch.float32
    assert torch.allclose(loss.double(), expected, rtol=1e-5)
    (ours,) = torch.autograd.grad(loss, logits)
    (theirs,) = torch.autograd.grad(expected, logits)
    assert ours.dtype == dtype
    rounding = torch.finfo(dtype).eps * float(theirs.abs().max())
    tolerance = rounding + 8 * torch.finfo(torch.float32).eps
    assert torch.allclose(ours.float(), theirs.float(), rtol=0.0, atol=tolerance)
