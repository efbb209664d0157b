"""Trains the embedded model's adapter; may be stopped at any time and goes on where it was.

`python -m training.finetune --base MODEL_DIR --minutes 60` reads `build/pack/{train,dev}.pack`
and writes `build/train/ckpt` (adapter and state) and `build/train/log.jsonl`. With `--device cuda`
the same run takes place on a GPU; `--max-packed-tokens` then says how much goes into one pass.

FinetuneError: there is nothing to train on.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from apply_service.models.manifest import file_sha256
from snippets.writer import GENERATOR_VERSION
from training.adapter_model import (
    DTYPES,
    LOSS_WEIGHTS,
    WEIGHTS_NAME,
    AdapterModel,
    LossWeights,
    mean_loss,
)
from training.corpus_pack import MAX_TOKENS
from training.example import Example
from training.mixture import CHOICE_SHARE, EXAMPLES_PER_STEP, Mixture
from training.pack import read_pack

LEARNING_RATE = 1e-3
MIN_LEARNING_RATE_SHARE = 0.02
WARM_UP_STEPS = 5
MAX_GRADIENT_NORM = 1.0
MIN_KEPT_SHARE = 0.1
STATE_NAME = "state.pt"

DevT_contra = TypeVar("DevT_contra", contravariant=True)


class FinetuneError(Exception):
    """A run that cannot start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When training ends: after `max_steps`, or else after `minutes` of training."""

    minutes: float
    max_steps: int | None = None
    peak_learning_rate: float = LEARNING_RATE

    def progress(self, step: int, elapsed_s: float) -> float:
        """How much of the training is done, 0 to 1."""
        done = step / self.max_steps if self.max_steps else elapsed_s / (self.minutes * 60)
        return min(done, 1.0)

    def learning_rate(self, step: int, elapsed_s: float) -> float:
        """Warm-up by steps, then a cosine over the progress."""
        warm_up = min((step + 1) / WARM_UP_STEPS, 1.0)
        cosine = 0.5 + 0.5 * math.cos(math.pi * self.progress(step, elapsed_s))
        share = MIN_LEARNING_RATE_SHARE + (1 - MIN_LEARNING_RATE_SHARE) * cosine
        return self.peak_learning_rate * warm_up * share


class TrainingRun(Protocol[DevT_contra]):
    """What `run` drives; it can go on from what it has saved."""

    step: int
    elapsed_s: float

    def train_step(self, schedule: Schedule) -> Mapping[str, float]:
        """One update of the weights; what happened in it."""
        ...

    def evaluate(self, examples: Sequence[DevT_contra]) -> Mapping[str, float]:
        """How good it is on these; changes nothing."""
        ...

    def save(self, folder: Path) -> None:
        """Write all that a resumed run needs."""
        ...


class Trainer:
    """One training run. `step` and `elapsed_s` count over all its parts.

    With `max_packed_tokens` several examples share one pass of the model, as a GPU wants it;
    without it each is a pass of its own, `num_workers` of them at a time.

    A pass whose summed loss is below `sure_loss` nats goes backward only with the probability
    `kept_share`, and then counts for as many as were left out: the expected gradient is the same
    (importance sampling by loss, as Katharopoulos and Fleuret, 2018), but hardly any time is spent
    on answers that the model already writes. 0 keeps all.
    """

    def __init__(
        self,
        model: AdapterModel,
        mixture: Mixture,
        *,
        weights: LossWeights = LOSS_WEIGHTS["weighted"],
        max_packed_tokens: int = 0,
        num_workers: int = 1,
        sure_loss: float = 0.0,
    ) -> None:
        self.step = 0
        self.elapsed_s = 0.0
        self._model = model
        self._mixture = mixture
        self._weights = weights
        self._max_packed_tokens = max_packed_tokens
        self._sure_loss = sure_loss
        self._workers = ThreadPoolExecutor(num_workers)
        self._optimizer = torch.optim.AdamW(
            model.parameters(), lr=LEARNING_RATE, weight_decay=0.01, betas=(0.9, 0.98)
        )

    def batch(self, step: int) -> list[Example]:
        """The examples of a step, the same in every run."""
        return self._mixture.batch(step)

    def train_step(self, schedule: Schedule) -> dict[str, float]:
        """One update of the weights; what happened in it."""
        started = time.monotonic()
        rate = schedule.learning_rate(self.step, self.elapsed_s)
        batch = self.batch(self.step)
        weight = sum(map(self._weights.total, batch))
        total, num_kept = self._take_gradients(batch)
        for parameter in self._model.parameters():
            if parameter.grad is not None:
                parameter.grad /= weight
        norm = torch.nn.utils.clip_grad_norm_(self._model.parameters(), MAX_GRADIENT_NORM)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        self.step += 1
        seconds = time.monotonic() - started
        self.elapsed_s += seconds
        return {
            "step": self.step,
            "loss": round(total / weight, 5),
            "kept_passes": num_kept,
            "lr": round(rate, 7),
            "gradient_norm": round(float(norm), 4),
            "tokens_per_s": round(sum(map(len, batch)) / seconds, 1),
            "elapsed_s": round(self.elapsed_s, 1),
        }

    def _take_gradients(self, batch: Sequence[Example]) -> tuple[float, int]:
        """Sum the gradients of the examples' losses into the parameters.

        Returns the summed loss, and how many passes went backward. On a CPU one example a thread
        is faster than many threads in one; the longest come first, so that no thread is alone at
        the end, and the sum keeps this order.
        """
        parameters = self._model.parameters()
        rng = random.Random(f"{self._mixture.seed}:{self.step}")
        passes = [(one, rng.random()) for one in packed(batch, self._max_packed_tokens)]
        passes.sort(key=lambda drawn: -sum(map(len, drawn[0])))

        def gradients(drawn: tuple[Sequence[Example], float]) -> tuple[float, Sequence[Tensor]]:
            together, luck = drawn
            loss = self._model.loss(together, self._weights)
            share = kept_share(loss.item(), self._sure_loss)
            if luck >= share:
                return loss.item(), ()
            return loss.item(), torch.autograd.grad(loss / share, parameters)

        total, num_kept = 0.0, 0
        for loss, found in self._workers.map(gradients, passes):
            total += loss
            num_kept += bool(found)
            for parameter, gradient in zip(parameters if found else (), found, strict=True):
                if parameter.grad is None:
                    parameter.grad = gradient.clone()
                else:
                    parameter.grad += gradient
        return total, num_kept

    def evaluate(self, examples: Sequence[Example]) -> dict[str, float]:
        """Loss per answer token, exact answers, right choices; changes nothing."""
        scores = list(self._workers.map(self._model.score, examples))
        num_exact = sum(score.is_exact for score in scores)
        choosing = [score for score in scores if score.num_choices]
        num_choices = sum(score.num_choices for score in choosing)
        return {
            "step": self.step,
            "dev_loss": round(mean_loss(scores), 5),
            "dev_exact": round(num_exact / max(len(scores), 1), 4),
            "dev_examples": len(scores),
            "dev_choice_loss": round(
                sum(score.choice_loss_sum for score in choosing) / max(num_choices, 1), 5
            ),
            "dev_choices_right": sum(score.num_wrong_choices == 0 for score in choosing),
            "dev_choices": len(choosing),
        }

    def save(self, folder: Path) -> None:
        """Write adapter and state; a run that is killed meanwhile keeps the older ones."""
        self._model.save_adapter(folder, dtype=torch.float32)
        partial = folder / (STATE_NAME + ".partial")
        torch.save(
            {
                "step": self.step,
                "elapsed_s": self.elapsed_s,
                "seed": self._mixture.seed,
                "parameters": [p.detach() for p in self._model.parameters()],
                "optimizer": self._optimizer.state_dict(),
            },
            partial,
        )
        partial.replace(folder / STATE_NAME)

    def try_resume(self, folder: Path) -> bool:
        """Go on from the state in `folder`, if there is one."""
        path = folder / STATE_NAME
        if not path.exists():
            return False
        state = torch.load(path, weights_only=True, map_location="cpu")
        with torch.no_grad():
            for parameter, saved in zip(self._model.parameters(), state["parameters"], strict=True):
                parameter.copy_(saved)
        self._optimizer.load_state_dict(state["optimizer"])
        self.step, self.elapsed_s = state["step"], state["elapsed_s"]
        self._mixture = self._mixture.with_seed(state["seed"])
        return True


def kept_share(loss: float, sure_loss: float) -> float:
    """How often a pass with this summed loss goes backward, `MIN_KEPT_SHARE` to 1."""
    return 1.0 if loss >= sure_loss else max(loss / sure_loss, MIN_KEPT_SHARE)


def packed(batch: Sequence[Example], max_tokens: int) -> list[list[Example]]:
    """The batch in groups of at most `max_tokens` tokens in order; longer examples stay alone."""
    groups: list[list[Example]] = []
    room = 0
    for example in batch:
        room -= len(example)
        if room < 0 or not groups:
            groups.append([])
            room = max_tokens - len(example)
        groups[-1].append(example)
    return groups


def run(
    trainer: TrainingRun[DevT_contra],
    schedule: Schedule,
    *,
    dev: Sequence[DevT_contra],
    out: Path,
    every_s: float,
) -> None:
    """Train until the schedule ends, with a checkpoint and an evaluation every `every_s`."""
    log = out / "log.jsonl"
    due_s = trainer.elapsed_s + every_s
    while schedule.progress(trainer.step, trainer.elapsed_s) < 1:
        append_entry(log, trainer.train_step(schedule))
        if trainer.elapsed_s >= due_s:
            trainer.save(out / "ckpt")
            append_entry(log, trainer.evaluate(dev))
            due_s = trainer.elapsed_s + every_s
    trainer.save(out / "ckpt")
    append_entry(log, {**trainer.evaluate(dev), "is_last": True})


def append_entry(log: Path, entry: Mapping[str, object]) -> None:
    """Write one line of a log."""
    with log.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the examples and train."""
    chosen = _parse(arguments)
    torch.set_num_threads(1)
    train, dev = (
        [one for one in read_pack(chosen.pack / f"{split}.pack") if len(one) <= chosen.max_tokens]
        for split in ("train", "dev")
    )
    if not train:
        raise FinetuneError(
            f"{chosen.pack}: no example of at most {chosen.max_tokens} tokens; write a pack with "
            "`make corpus-pack`, or raise --max-tokens"
        )
    weights = LOSS_WEIGHTS[chosen.loss]
    if not weights.choice and not weights.served:
        # Nothing is learnt from choices then, so no share of a step is to be of such examples.
        train = [replace(one, choices=()) for one in train]
    model = AdapterModel(
        chosen.base,
        rank=chosen.rank,
        alpha=2 * chosen.rank,
        seed=chosen.seed,
        dtype=DTYPES[chosen.dtype],
        device=chosen.device,
    )
    if chosen.start is not None:
        model.load_adapter(chosen.start)
    mixture = Mixture(
        train,
        seed=chosen.seed,
        choice_share=chosen.choice_share,
        examples_per_step=chosen.examples_per_step,
    )
    trainer = Trainer(
        model,
        mixture,
        weights=weights,
        max_packed_tokens=chosen.max_packed_tokens,
        num_workers=chosen.threads,
        sure_loss=chosen.sure_loss,
    )
    chosen.out.mkdir(parents=True, exist_ok=True)
    is_resumed = trainer.try_resume(chosen.out / "ckpt")
    start: dict[str, Any] = {
        "generator_version": GENERATOR_VERSION,
        "examples": len(train),
        "examples_with_choice": sum(bool(example.choices) for example in train),
        "tokens": sum(map(len, train)),
        "resumed_at": trainer.step if is_resumed else 0,
        "settings": {
            name: str(value) if isinstance(value, Path) else value
            for name, value in vars(chosen).items()
            if name not in ("base", "out")
        },
    }
    if not is_resumed:  # later other weights may stand there
        weights_path = chosen.start and chosen.start / WEIGHTS_NAME
        start["start_sha256"] = weights_path and file_sha256(weights_path)
    append_entry(chosen.out / "log.jsonl", start)
    schedule = Schedule(
        minutes=chosen.minutes, max_steps=chosen.max_steps, peak_learning_rate=chosen.learning_rate
    )
    sample = Mixture(dev, seed=0, choice_share=chosen.choice_share).sample(chosen.dev_examples)
    run(trainer, schedule, dev=sample, out=chosen.out, every_s=chosen.every_s)
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m training.finetune", description=__doc__)
    parser.add_argument("--base", type=Path, required=True, help="folder of the prepared model")
    parser.add_argument("--pack", type=Path, default=Path("build/pack"))
    parser.add_argument("--start", type=Path, default=None, help="adapter to start from")
    parser.add_argument("--out", type=Path, default=Path("build/train"))
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--max-steps", type=int, default=None, help="end by steps, not by time")
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtype", choices=sorted(DTYPES), default="bfloat16")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--examples-per-step", type=int, default=EXAMPLES_PER_STEP)
    parser.add_argument("--max-packed-tokens", type=int, default=0, help="of a pass; for a GPU")
    parser.add_argument("--threads", type=int, default=2, help="examples at a time")
    parser.add_argument("--loss", choices=sorted(LOSS_WEIGHTS), default="weighted")
    parser.add_argument(
        "--sure-loss",
        type=float,
        default=0.0,
        metavar="NATS",
        help="passes with a smaller loss go backward more seldom and count for more; 0: all do",
    )
    parser.add_argument("--choice-share", type=float, default=CHOICE_SHARE)
    parser.add_argument("--max-tokens", type=int, default=MAX_TOKENS, help="of an example")
    parser.add_argument("--learning-rate", type=float, default=LEARNING_RATE)
    parser.add_argument("--dev-examples", type=int, default=32)
    parser.add_argument("--every-s", type=float, default=300.0)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
