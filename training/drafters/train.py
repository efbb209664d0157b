"""Trains heads on stored features; may be stopped at any time and goes on where it was."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from training.drafters.drafter_file import write_drafter
from training.drafters.evaluate import LevelCounts, count_levels
from training.drafters.features import FeaturesError, FeatureSet, Passage
from training.drafters.heads import DraftHeads
from training.finetune import MAX_GRADIENT_NORM, STATE_NAME, Schedule

DOCUMENTS_PER_STEP = 2


class HeadsTrainer:
    """One training run, as `training.finetune.run` drives it.

    Weights and losses are float32; products are computed in the numbers of the frozen target.
    """

    def __init__(
        self,
        heads: DraftHeads,
        features: FeatureSet,
        *,
        seed: int,
        settings: Mapping[str, object],
        documents_per_step: int = DOCUMENTS_PER_STEP,
    ) -> None:
        """settings: what a run that goes on must have in common with what it goes on from"""
        heads.fit_inputs(features[0])
        self.step = 0
        self.elapsed_s = 0.0
        self._heads = heads
        self._features = features
        self._seed = seed
        self._documents_per_step = documents_per_step
        self._settings = {
            **settings,
            "seed": seed,
            "num_documents": len(features),
            "documents_per_step": documents_per_step,
        }
        self._dtype = heads.target.head.dtype
        self._optimizer = torch.optim.AdamW(
            heads.parameters(), weight_decay=0.01, betas=(0.9, 0.95)
        )

    def batch(self, step: int) -> list[int]:
        """The documents of a step, the same in every run: each epoch has an order of its own."""
        first, num_documents = step * self._documents_per_step, len(self._features)
        places = range(first, first + self._documents_per_step)
        orders = {
            epoch: random.Random(f"{self._seed}:{epoch}").sample(
                range(num_documents), num_documents
            )
            for epoch in {place // num_documents for place in places}
        }
        return [orders[place // num_documents][place % num_documents] for place in places]

    def train_step(self, schedule: Schedule) -> dict[str, float]:
        """One update of the weights; what happened in it."""
        started = time.monotonic()
        rate = schedule.learning_rate(self.step, self.elapsed_s)
        passages = [self._features[index] for index in self.batch(self.step)]
        num_rows = sum(len(passage) - 1 for passage in passages)
        rng = torch.Generator().manual_seed((self._seed << 32) + self.step)
        total = 0.0
        for passage in passages:
            loss = self._loss(passage, rng) / num_rows
            loss.backward()  # type: ignore[no-untyped-call]
            total += loss.item()
        norm = torch.nn.utils.clip_grad_norm_(self._heads.parameters(), MAX_GRADIENT_NORM)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        self.step += 1
        seconds = time.monotonic() - started
        self.elapsed_s += seconds
        return {
            "step": self.step,
            "loss": round(total, 5),
            "lr": round(rate, 7),
            "gradient_norm": round(float(norm), 4),
            "tokens_per_s": round(num_rows / seconds, 1),
            "elapsed_s": round(self.elapsed_s, 1),
        }

    @torch.no_grad()
    def evaluate(self, examples: Sequence[Passage]) -> dict[str, float]:
        """The loss, and how often the first drafted token holds; changes nothing."""
        rng = torch.Generator().manual_seed(0)
        total, counts = 0.0, LevelCounts(1)
        for passage in examples:
            total += float(self._loss(passage, rng))
            with self._autocast():
                count_levels(self._heads.guesses(passage, num_levels=1, count=1), passage, counts)
        return {
            "step": self.step,
            "dev_loss": round(total / sum(len(passage) - 1 for passage in examples), 5),
            "dev_first_holds": round(counts.first[0] / max(counts.trials[0], 1), 4),
        }

    def save(self, folder: Path) -> None:
        """Write drafter and state; a run that is killed meanwhile keeps the older state."""
        write_drafter(self._heads, folder)
        partial = folder / (STATE_NAME + ".partial")
        torch.save(
            {
                "step": self.step,
                "elapsed_s": self.elapsed_s,
                "settings": self._settings,
                "heads": self._heads.state_dict(),
                "optimizer": self._optimizer.state_dict(),
            },
            partial,
        )
        partial.replace(folder / STATE_NAME)

    def try_resume(self, folder: Path) -> bool:
        """Go on from the state in `folder`, if there is one.

        Raises FeaturesError if it is of another run: other heads, order or documents.
        """
        path = folder / STATE_NAME
        if not path.exists():
            return False
        state = torch.load(path, weights_only=True)
        for name, value in self._settings.items():
            if state["settings"].get(name) != value:
                raise FeaturesError(
                    f"{path} was trained with {name} {state['settings'].get(name)!r}, and now it"
                    f" is {value!r}; train into another folder"
                )
        self._heads.load_state_dict(state["heads"])
        self._optimizer.load_state_dict(state["optimizer"])
        self.step, self.elapsed_s = state["step"], state["elapsed_s"]
        return True

    def _loss(self, passage: Passage, rng: torch.Generator) -> torch.Tensor:
        with self._autocast():
            return self._heads.loss_sum(passage, rng)

    def _autocast(self) -> torch.autocast:
        is_narrow = self._dtype != torch.float32
        return torch.autocast("cpu", dtype=torch.bfloat16, enabled=is_narrow)
