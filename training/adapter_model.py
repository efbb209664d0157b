"""The base model with a LoRA adapter: its loss on answers, and its files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from peft.utils import get_peft_model_state_dict, set_peft_model_state_dict
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoModelForCausalLM

from training.examples import Example

LINEAR_LAYERS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
DTYPES = {"bfloat16": torch.bfloat16, "float32": torch.float32}
WEIGHTS_NAME = "adapter_model.safetensors"
CONFIG_NAME = "adapter_config.json"


@dataclass(frozen=True, slots=True)
class AnswerScore:
    """One teacher-forced pass over an answer of `num_tokens` tokens."""

    loss_sum: float
    num_tokens: int
    num_wrong: int

    @property
    def is_exact(self) -> bool:
        """Greedy decoding would write exactly this answer: every argmax is the truth."""
        return self.num_wrong == 0


class AdapterModel:
    """A causal language model whose only trainable weights are the adapter's, kept in fp32.

    `dtype` is that of the frozen weights and of the matrix products; logits are always fp32.
    """

    def __init__(
        self, base: Path, *, rank: int, alpha: int, seed: int, dtype: torch.dtype = torch.float32
    ) -> None:
        torch.manual_seed(seed)
        config = LoraConfig(
            r=rank,
            lora_alpha=alpha,
            lora_dropout=0.0,
            bias="none",
            task_type="CAUSAL_LM",
            target_modules=list(LINEAR_LAYERS),
        )
        model = AutoModelForCausalLM.from_pretrained(base, dtype=dtype)
        self._peft: PeftModel = get_peft_model(model, config)
        self._config = config
        self._dtype = dtype
        self._causal: Any = self._peft.get_base_model()

    @classmethod
    def for_use(cls, base: Path, adapter: Path | None, *, dtype: torch.dtype) -> AdapterModel:
        """The model with a finished adapter, or bare: a fresh adapter changes nothing."""
        settings = {"r": 1, "lora_alpha": 1}
        if adapter is not None:
            settings = json.loads((adapter / CONFIG_NAME).read_text(encoding="utf-8"))
        model = cls(base, rank=settings["r"], alpha=settings["lora_alpha"], seed=0, dtype=dtype)
        if adapter is not None:
            model.load_adapter(adapter)
        return model

    def parameters(self) -> list[torch.nn.Parameter]:
        """The adapter's weights, always in the same order."""
        return [p for p in self._peft.parameters() if p.requires_grad]

    def answer_logits(self, example: Example) -> Tensor:
        """Logits at the answer's positions only  # [num_answer_tokens, vocab_size] float32"""
        num_answer = len(example.answer_token_ids)
        token_ids = torch.tensor([example.prompt_token_ids + example.answer_token_ids[:-1]])
        with torch.autocast("cpu", dtype=self._dtype, enabled=self._dtype != torch.float32):
            hidden = self._causal.model(input_ids=token_ids, use_cache=False).last_hidden_state
            logits: Tensor = self._causal.lm_head(hidden[0, -num_answer:])
        return logits.float()

    def answer_loss(self, example: Example) -> Tensor:
        """Summed cross entropy of the answer and its end  # [] float32"""
        truth = torch.tensor(example.answer_token_ids)
        return torch.nn.functional.cross_entropy(
            self.answer_logits(example), truth, reduction="sum"
        )

    @torch.no_grad()
    def score(self, example: Example) -> AnswerScore:
        """How well the model would write this answer by itself."""
        logits = self.answer_logits(example)
        truth = torch.tensor(example.answer_token_ids)
        loss = torch.nn.functional.cross_entropy(logits, truth, reduction="sum")
        num_wrong = int((logits.argmax(-1) != truth).sum())
        return AnswerScore(float(loss), len(truth), num_wrong)

    def save_adapter(self, folder: Path, *, dtype: torch.dtype) -> None:
        """Write the adapter as peft reads it; the weights are in place last."""
        folder.mkdir(parents=True, exist_ok=True)
        weights = {
            name: weight.detach().to(dtype).contiguous()
            for name, weight in get_peft_model_state_dict(self._peft).items()
        }
        settings = self._config.to_dict() | {
            "inference_mode": True,
            "base_model_name_or_path": None,
            "target_modules": sorted(LINEAR_LAYERS),
        }
        (folder / CONFIG_NAME).write_text(
            json.dumps(settings, indent=2, sort_keys=True, default=str) + "\n", encoding="utf-8"
        )
        partial = folder / (WEIGHTS_NAME + ".partial")
        save_file(weights, partial)
        partial.replace(folder / WEIGHTS_NAME)

    def load_adapter(self, folder: Path) -> None:
        """Take the weights of an adapter of the same shape."""
        set_peft_model_state_dict(self._peft, load_file(folder / WEIGHTS_NAME))


def mean_loss(scores: Sequence[AnswerScore]) -> float:
    """Loss per answer token."""
    return sum(s.loss_sum for s in scores) / max(sum(s.num_tokens for s in scores), 1)
