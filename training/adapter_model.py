"""The base model with a LoRA adapter: its loss on answers, and its files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from peft.utils import get_peft_model_state_dict, set_peft_model_state_dict
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoModelForCausalLM

from training.cpu_ops import ATTENTION_NAME, summed_cross_entropy
from training.example import Example

LINEAR_LAYERS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
DTYPES = {"bfloat16": torch.bfloat16, "float32": torch.float32}
WEIGHTS_NAME = "adapter_model.safetensors"
CONFIG_NAME = "adapter_config.json"


@dataclass(frozen=True, slots=True)
class LossWeights:
    """What counts in training: every answer token, and every choice among what is allowed.

    The cross entropy of a choice is taken among the allowed tokens alone: the model's own word,
    and, for `served`, with the weights of the merge added to it, so that the model need only learn
    what these do not say.
    """

    token: float = 1.0
    choice: float = 0.0
    served: float = 0.0

    def total(self, example: Example) -> float:
        """The weight of a whole answer, by which its summed loss is divided."""
        a_choice = self.choice + self.served
        return self.token * len(example.answer_token_ids) + a_choice * len(example.choices)


LOSS_WEIGHTS = {
    "plain": LossWeights(),
    "weighted": LossWeights(token=0.3, served=2.0),
    "both": LossWeights(choice=4.0),
    "residual": LossWeights(served=2.0),
}


@dataclass(frozen=True, slots=True)
class AnswerScore:
    """One teacher-forced pass over an answer of `num_tokens` tokens and `num_choices` choices."""

    loss_sum: float
    num_tokens: int
    num_wrong: int
    num_choices: int = 0
    num_wrong_choices: int = 0
    choice_loss_sum: float = 0.0

    @property
    def is_exact(self) -> bool:
        """Greedy decoding would write exactly this answer: every argmax is the truth."""
        return self.num_wrong == 0


class AdapterModel:
    """A causal language model whose only trainable weights are the adapter's, kept in fp32.

    `dtype` is that of the frozen weights and of the matrix products; losses are always fp32.
    """

    def __init__(
        self,
        base: Path,
        *,
        rank: int,
        alpha: int,
        seed: int,
        dtype: torch.dtype = torch.float32,
        device: str = "cpu",
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
        model = AutoModelForCausalLM.from_pretrained(
            base, dtype=dtype, attn_implementation=ATTENTION_NAME
        )
        self._peft: PeftModel = get_peft_model(model, config).to(device)
        self._config = config
        self._dtype = dtype
        self._device = torch.device(device)
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
        return self._logits([example]).float()

    def _logits(self, examples: Sequence[Example]) -> Tensor:
        """Those of all answers in `dtype`, one after another, from one pass over all examples.

        Each example starts at position 0, by which the model keeps them apart.
        """
        token_ids: list[int] = []
        positions: list[int] = []
        rows: list[int] = []
        for example in examples:
            token_ids += example.prompt_token_ids + example.answer_token_ids[:-1]
            positions += range(len(example) - 1)
            rows += range(len(token_ids) - len(example.answer_token_ids), len(token_ids))
        with self._autocast():
            hidden = self._causal.model(
                input_ids=self._tensor([token_ids]),
                position_ids=self._tensor([positions]) if len(examples) > 1 else None,
                use_cache=False,
            ).last_hidden_state
            logits: Tensor = self._causal.lm_head(hidden[0, self._tensor(rows)])
        return logits

    def loss(self, examples: Sequence[Example], weights: LossWeights) -> Tensor:
        """Weighted sum of the cross entropies of answers and choices  # [] float32"""
        logits = self._logits(examples)
        truth = self._tensor([token for one in examples for token in one.answer_token_ids])
        loss = weights.token * summed_cross_entropy(logits, truth)
        if weights.choice or weights.served:
            ends = accumulate(len(example.answer_token_ids) for example in examples)
            for example, end in zip(examples, ends, strict=True):
                own = logits[end - len(example.answer_token_ids) : end]
                branches = list(choice_log_probs(own, example))
                for factor, found in (
                    (weights.choice, branches),
                    (weights.served, with_prior(branches, example)),
                ):
                    for log_probs, chosen in found:
                        loss = loss - factor * log_probs[chosen]
        return loss

    @torch.no_grad()
    def score(self, example: Example) -> AnswerScore:
        """How well the model would write this answer by itself."""
        logits = self.answer_logits(example).cpu()
        truth = torch.tensor(example.answer_token_ids)
        loss = torch.nn.functional.cross_entropy(logits, truth, reduction="sum")
        num_wrong = int((logits.argmax(-1) != truth).sum())
        choices = list(choice_log_probs(logits, example))
        return AnswerScore(
            float(loss),
            len(truth),
            num_wrong,
            num_choices=len(choices),
            num_wrong_choices=sum(int(found.argmax()) != chosen for found, chosen in choices),
            choice_loss_sum=-sum(float(found[chosen]) for found, chosen in choices),
        )

    @torch.no_grad()
    def branch_log_probs(self, examples: Sequence[Example]) -> list[list[tuple[Tensor, int]]]:
        """For each answer to one prompt, what `choice_log_probs` gives; no answer may be empty.

        What all of them begin with is computed once.
        """
        prompt = examples[0].prompt_token_ids
        answers = [example.answer_token_ids for example in examples]
        num_shared = min(map(len, answers)) - 1
        while len({answer[:num_shared] for answer in answers}) > 1:
            num_shared -= 1
        found = []
        with self._autocast():
            shared = self._causal.model(
                input_ids=self._tensor([prompt + answers[0][:num_shared]]), use_cache=True
            )
            cache = shared.past_key_values
            for example in examples:
                own = self._tensor([example.answer_token_ids[num_shared:-1]])
                hidden = shared.last_hidden_state[0, -num_shared - 1 :]
                if own.shape[1]:
                    tail = self._causal.model(input_ids=own, past_key_values=cache, use_cache=True)
                    hidden = torch.cat([hidden, tail.last_hidden_state[0]])
                    cache.crop(-own.shape[1])
                rows = self._tensor([choice.offset for choice in example.choices])
                logits = self._causal.lm_head(hidden[rows]).float().cpu()
                found.append(list(_branches(logits, example)))
        return found

    def _autocast(self) -> torch.autocast:
        is_needed = self._dtype != torch.float32
        return torch.autocast(self._device.type, dtype=self._dtype, enabled=is_needed)

    def _tensor(self, values: Sequence[Any]) -> Tensor:
        return torch.tensor(values, dtype=torch.long, device=self._device)

    def save_adapter(self, folder: Path, *, dtype: torch.dtype) -> None:
        """Write the adapter as peft reads it; the weights are in place last."""
        folder.mkdir(parents=True, exist_ok=True)
        weights = {
            name: weight.detach().to("cpu", dtype).contiguous()
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


def choice_log_probs(logits: Tensor, example: Example) -> Iterator[tuple[Tensor, int]]:
    """For each choice the log-probabilities of its branches, and which of them is the truth.

    `logits` are those of the answer, of which only the allowed tokens count  # [num_allowed]
    """
    rows = [choice.offset for choice in example.choices]
    return _branches(logits[rows], example)


def with_prior(
    branches: Sequence[tuple[Tensor, int]], example: Example
) -> list[tuple[Tensor, int]]:
    """What `choice_log_probs` gave, with the priors of the example's choices counted."""
    return [
        ((found + found.new_tensor(choice.log_prior)).log_softmax(-1), taken)
        if choice.log_prior
        else (found, taken)
        for (found, taken), choice in zip(branches, example.choices, strict=True)
    ]


def _branches(logits: Tensor, example: Example) -> Iterator[tuple[Tensor, int]]:
    """`logits` are those at the choices  # [num_choices, vocab_size]"""
    for row, choice in zip(logits, example.choices, strict=True):
        allowed = list(choice.allowed_token_ids)
        truth = example.answer_token_ids[choice.offset]
        yield row[allowed].float().log_softmax(-1), choice.allowed_token_ids.index(truth)


def mean_loss(scores: Sequence[AnswerScore]) -> float:
    """Loss per answer token."""
    return sum(s.loss_sum for s in scores) / max(sum(s.num_tokens for s in scores), 1)
