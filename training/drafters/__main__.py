"""`python -m training.drafters collect | train | evaluate`: the three stages, each resumable."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

import training
from training.drafters.collect import collect_parts
from training.drafters.documents import Cutting
from training.drafters.drafter_file import DEFAULT_SIZES, KINDS, WEIGHTS_NAME, read_drafter
from training.drafters.evaluate import evaluate, evaluate_trigrams, markdown_table
from training.drafters.features import open_part, read_model_config
from training.drafters.frozen_target import FrozenTarget
from training.drafters.heads import HeadSizes
from training.drafters.token_counts import TrigramTable, frequent_token_ids
from training.drafters.train import DOCUMENTS_PER_STEP, HeadsTrainer
from training.finetune import LEARNING_RATE, Schedule, append_entry, run
from training.releases import read_packages

_DTYPES = {"bfloat16": torch.bfloat16, "float32": torch.float32}
_FEATURES = Path("build/drafters/features")
_PACKAGES = Path(training.__file__).with_name("packages.toml")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one stage."""
    chosen = _parse(arguments)
    torch.set_num_threads(chosen.threads)
    stages = {"collect": _collect, "train": _train, "evaluate": _evaluate}
    stages[chosen.stage](chosen)
    return 0


def _collect(chosen: argparse.Namespace) -> None:
    collect_parts(
        chosen.model,
        read_packages(chosen.packages, min_versions=1),
        out=chosen.out,
        releases=chosen.releases,
        max_tokens={"train": chosen.tokens, "held_out": chosen.held_out_tokens},
        cutting=Cutting(
            seed=chosen.seed,
            max_tokens=chosen.document_tokens,
            tokens_per_package=chosen.tokens_per_package,
        ),
        dtype=_DTYPES[chosen.dtype],
    )


def _train(chosen: argparse.Namespace) -> None:
    features, held_out = (open_part(chosen.features, part) for part in ("train", "held_out"))
    vocab_size = read_model_config(chosen.features)["vocab_size"]
    token_ids = frequent_token_ids(features, count=chosen.vocabulary, vocab_size=vocab_size)
    torch.manual_seed(chosen.seed)
    sizes = HeadSizes(
        num_heads=chosen.heads or DEFAULT_SIZES[chosen.kind].num_heads,
        num_layers=chosen.layers or DEFAULT_SIZES[chosen.kind].num_layers,
        has_own_head=chosen.own_head,
    )
    target = FrozenTarget.read(chosen.features, token_ids, dtype=_DTYPES[chosen.dtype])
    trainer = HeadsTrainer(
        KINDS[chosen.kind](target, sizes),
        features,
        seed=chosen.seed,
        settings={
            name: getattr(chosen, name)
            for name in ("kind", "heads", "layers", "own_head", "vocabulary", "dtype")
        },
        documents_per_step=chosen.documents_per_step,
    )
    chosen.out.mkdir(parents=True, exist_ok=True)
    is_resumed = trainer.try_resume(chosen.out / "ckpt")
    append_entry(
        chosen.out / "log.jsonl",
        {
            "resumed_at": trainer.step if is_resumed else 0,
            "tokens": features.num_tokens,
            "settings": {name: str(value) for name, value in vars(chosen).items()},
        },
    )
    schedule = Schedule(
        minutes=chosen.minutes, max_steps=chosen.max_steps, peak_learning_rate=chosen.learning_rate
    )
    sample = [held_out[index] for index in range(min(chosen.dev_documents, len(held_out)))]
    run(trainer, schedule, dev=sample, out=chosen.out, every_s=chosen.every_s)
    path = chosen.out / "ckpt" / WEIGHTS_NAME
    print(f"{path}: {trainer.step} steps, {path.stat().st_size / 2**20:.1f} MiB")


def _evaluate(chosen: argparse.Namespace) -> None:
    held_out = open_part(chosen.features, "held_out")
    rows = []
    for drafter in chosen.drafter:
        kind, _, folder = drafter.partition(":")
        heads = read_drafter(kind, Path(folder), features=chosen.features)
        passages = (held_out[index] for index in range(len(held_out)))
        rows.append((drafter, evaluate(heads, passages, num_levels=chosen.levels)))
    vocab_size = read_model_config(chosen.features)["vocab_size"]
    table = TrigramTable(open_part(chosen.features, "train").texts(), vocab_size=vocab_size)
    rows.append(("trigrams", evaluate_trigrams(table, held_out, num_levels=chosen.levels)))
    print(markdown_table(rows))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m training.drafters", description=__doc__)
    stages = parser.add_subparsers(dest="stage", required=True)
    collecting = stages.add_parser("collect", help="what the target says about package code")
    collecting.add_argument("--model", type=Path, required=True, help="folder of the target")
    collecting.add_argument("--out", type=Path, default=_FEATURES)
    collecting.add_argument("--tokens", type=int, default=1_500_000, help="of the training part")
    collecting.add_argument("--held-out-tokens", type=int, default=100_000)
    collecting.add_argument("--packages", type=Path, default=_PACKAGES)
    collecting.add_argument("--releases", type=Path, default=Path("build/releases"))
    collecting.add_argument("--document-tokens", type=int, default=Cutting().max_tokens)
    collecting.add_argument("--tokens-per-package", type=int, default=Cutting().tokens_per_package)
    training_stage = stages.add_parser("train", help="heads, on what was collected")
    training_stage.add_argument("--kind", choices=sorted(KINDS), required=True)
    training_stage.add_argument("--features", type=Path, default=_FEATURES)
    training_stage.add_argument("--out", type=Path, required=True)
    training_stage.add_argument("--minutes", type=float, default=60.0)
    training_stage.add_argument("--max-steps", type=int, default=None, help="not by time")
    training_stage.add_argument("--heads", type=int, default=None, help="of medusa and hydra")
    training_stage.add_argument("--layers", type=int, default=None, help="blocks of each head")
    training_stage.add_argument(
        "--own-head", action="store_true", help="train a copy of the target's head, and store it"
    )
    training_stage.add_argument("--vocabulary", type=int, default=8192, help="drafted tokens")
    training_stage.add_argument("--documents-per-step", type=int, default=DOCUMENTS_PER_STEP)
    training_stage.add_argument("--learning-rate", type=float, default=LEARNING_RATE)
    training_stage.add_argument("--dev-documents", type=int, default=16)
    training_stage.add_argument("--every-s", type=float, default=300.0)
    for stage in (collecting, training_stage):
        stage.add_argument("--seed", type=int, default=0)
        stage.add_argument("--dtype", choices=sorted(_DTYPES), default="bfloat16")
    judging = stages.add_parser("evaluate", help="drafters and a trigram table, as Markdown")
    judging.add_argument(
        "--drafter", action="append", required=True, metavar="KIND:DIR", help="may be repeated"
    )
    judging.add_argument("--features", type=Path, default=_FEATURES)
    judging.add_argument("--levels", type=int, default=4, help="drafted tokens to judge")
    for stage in (collecting, training_stage, judging):
        stage.add_argument("--threads", type=int, default=2)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
