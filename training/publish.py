"""Turns a checkpoint into the adapter that is shipped: fp16 weights, settings and a card.

`python -m training.publish --report REPORT --decisions REPORT` takes as its figures what
`training.evaluate` and `training.decisions` printed. With `--start-share 0.5` the mean of the
checkpoint and of the adapter that it started from is published. Several checkpoints of the run may
be named, the last one of it last: they share the rest equally.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from apply_service.models.manifest import file_sha256
from apply_service.prompts.calibration import CALIBRATION_NAME
from training.adapter_model import CONFIG_NAME, LOSS_WEIGHTS, WEIGHTS_NAME
from training.corpus import split_of
from training.releases import read_packages

BASE_MODEL = "HuggingFaceTB/SmolLM2-135M-Instruct"
BASE_MODEL_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
CARD_NAME = "apply_adapter.json"
MAX_FILE_BYTES = 15 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How an adapter was trained, in numbers; `previous` is that of the one it started from.

    `start_share` is how much of that one's weights is in the published ones; the rest is the mean
    of `num_checkpoints` of the run.
    """

    steps: int
    minutes: float
    rank: int
    alpha: int
    generator_version: int
    loss: str
    choice_share: float
    examples: int
    examples_with_choice: int
    examples_per_step: int
    learning_rate: float
    max_tokens: int
    device: str
    start_share: float
    num_checkpoints: int
    previous: dict[str, Any] | None


def read_recipe(checkpoints: Sequence[Path], log: Path, *, start_share: float = 0.0) -> Recipe:
    """What the log and the settings of a finished run say; the last checkpoint is its end."""
    last, start = (_entries_with(key, log)[-1] for key in ("loss", "settings"))
    chosen = start["settings"]
    adapter = json.loads((checkpoints[-1] / CONFIG_NAME).read_text(encoding="utf-8"))
    return Recipe(
        steps=last["step"],
        minutes=round(last["elapsed_s"] / 60, 1),
        rank=adapter["r"],
        alpha=adapter["lora_alpha"],
        start_share=start_share,
        num_checkpoints=len(checkpoints),
        previous=_read_previous(chosen["start"]),
        **{name: start[name] for name in _FROM_START},
        **{name: chosen[name] for name in _FROM_SETTINGS},
    )


def start_of(log: Path) -> Path | None:
    """The folder of the adapter that a run started from.

    Raises `ValueError` if that holds other weights by now, such as those published of this run, or
    if the log is too old to say which they were.
    """
    entries = _entries_with("start_sha256", log)
    if not entries:
        raise ValueError(f"{log}: does not say which weights the run started from; train again")
    entry = entries[-1]
    if entry["settings"]["start"] is None:
        return None
    folder = Path(entry["settings"]["start"])
    found = file_sha256(folder / WEIGHTS_NAME)
    if found != entry["start_sha256"]:
        raise ValueError(
            f"{folder}: the run started from weights with SHA-256 {entry['start_sha256']}, these"
            f" have {found}; put the former ones back"
        )
    return folder


def _entries_with(key: str, log: Path) -> list[dict[str, Any]]:
    entries = (json.loads(line) for line in log.read_text(encoding="utf-8").splitlines())
    return [entry for entry in entries if key in entry]


_FROM_START = ("generator_version", "examples", "examples_with_choice")
_FROM_SETTINGS = (
    "loss",
    "choice_share",
    "examples_per_step",
    "learning_rate",
    "max_tokens",
    "device",
)


def _read_previous(folder: str | None) -> dict[str, Any] | None:
    """The recipe of a published adapter, with the hash of its weights."""
    if folder is None:
        return None
    found: dict[str, Any] = {"weights_sha256": file_sha256(Path(folder) / WEIGHTS_NAME)}
    record = Path(folder) / CARD_NAME
    if record.exists():
        found |= json.loads(record.read_text(encoding="utf-8"))["recipe"]
    return found


def mean_weights(
    checkpoints: Sequence[Path], start: Path | None, start_share: float
) -> dict[str, Tensor]:
    """The mean of checkpoints of a run, with `start_share` of what it started from, in fp16.

    The mean of several points of a run often generalises better than any (arXiv:2203.05482).
    Raises `ValueError` for a share that is none, or if there is nothing to share with.
    """
    if not 0 <= start_share <= 1:
        raise ValueError(f"--start-share {start_share}: must be from 0 to 1")
    if start_share and start is None:
        raise ValueError(f"--start-share {start_share}: the run started from no adapter; leave it")
    parts = [load_file(checkpoint / WEIGHTS_NAME) for checkpoint in checkpoints]
    weights = {name: torch.stack([part[name] for part in parts]).mean(dim=0) for name in parts[0]}
    if start is not None and start_share:
        former = load_file(start / WEIGHTS_NAME)
        weights = {
            name: torch.lerp(w, former[name].float(), start_share) for name, w in weights.items()
        }
    return {name: weight.half() for name, weight in weights.items()}


def publish(
    settings: Path,
    weights: dict[str, Tensor],
    out: Path,
    recipe: Recipe,
    figures: dict[str, Any],
) -> None:
    """Write the adapter, its record and its card into `out`; `settings` is peft's file.

    A calibration that was there is deleted: it holds for other weights.
    """
    out.mkdir(parents=True, exist_ok=True)
    (out / CALIBRATION_NAME).unlink(missing_ok=True)
    shutil.copyfile(settings, out / CONFIG_NAME)
    save_file(weights, out / WEIGHTS_NAME, metadata={"format": "pt"})
    (out / WEIGHTS_NAME).chmod(0o644)
    num_bytes = (out / WEIGHTS_NAME).stat().st_size
    if num_bytes > MAX_FILE_BYTES:
        raise ValueError(f"{WEIGHTS_NAME}: {num_bytes} bytes, limit {MAX_FILE_BYTES}; lower --rank")
    record = {
        "base_model": BASE_MODEL,
        "base_model_sha256": BASE_MODEL_SHA256,
        "dtype": "float16",
        "figures": figures,
        "licence": "Apache-2.0",
        "prompt_profile": "embedded",
        "recipe": asdict(recipe),
    }
    text = json.dumps(record, indent=2, sort_keys=True)
    (out / CARD_NAME).write_text(text + "\n", encoding="utf-8")
    (out / "README.md").write_text(card_text(recipe, figures), encoding="utf-8")


def card_text(recipe: Recipe, figures: dict[str, Any]) -> str:
    """The model card: what it is for, its data, recipe, figures and limits."""
    packages = read_packages(Path(__file__).with_name("packages.toml"))
    splits = Counter(split_of(package.name) for package in packages)
    loss = LOSS_WEIGHTS[recipe.loss]
    return _CARD.format(
        base=BASE_MODEL,
        base_sha256=BASE_MODEL_SHA256,
        num_packages=len(packages),
        num_train=splits["train"],
        num_test=splits["test"],
        windows=_figure(figures["windows"]),
        served=_figure(figures["served"]),
        short_edits=_figure(figures["short_edits"]),
        decisions=_decisions(figures["decisions"]),
        choices=_choices(recipe),
        token_weight=loss.token,
        choice_weight=loss.choice,
        served_weight=loss.served,
        place={"cpu": "two CPU cores"}.get(recipe.device, "one GPU"),
        previous=_mean(recipe) + _previous(recipe.previous),
        **{name: value for name, value in asdict(recipe).items() if name != "previous"},
    )


def _figure(report: dict[str, Any]) -> str:
    return f"| {_share(report)} | {report['loss_per_token']:.4f} |"


def _share(report: dict[str, Any]) -> str:
    low, high = report["wilson_95"]
    return (
        f"{report['num_exact']} of {report['n']} ({report['exact']:.0%}) | {low:.0%} to {high:.0%}"
    )


def _choices(recipe: Recipe) -> str:
    if not recipe.examples_with_choice:
        return "Answers are whole; where several merges\nare valid was not marked in them."
    return (
        f"In {recipe.examples_with_choice} of them several merges are valid; a share of\n"
        f"{recipe.choice_share:.0%} of every step is of these."
    )


def _decisions(figures: dict[str, Any]) -> str:
    rows = {
        "first_guess": "the deterministic merge's first guess",
        "summed": "the model alone, log-probabilities of the branches summed",
        "served": "the model with the weights of the merge, branch by branch",
        "summed_where_first_guess_is_wrong": "the model alone where the first guess is wrong",
    }
    return "\n".join(f"| {text} | {_share(figures[name])} |" for name, text in rows.items())


def _mean(recipe: Recipe) -> str:
    text = ""
    if recipe.start_share:
        text = (
            f"What is published has\n{recipe.start_share:.0%} of the weights that it started from. "
        )
    if recipe.num_checkpoints > 1:
        text += f"{recipe.num_checkpoints} checkpoints\nof the run have equal parts in it. "
    return text


def _previous(recipe: dict[str, Any] | None, subject: str = "It") -> str:
    """What a run started from, back to the first."""
    if recipe is None:
        return f"{subject} started from zero."
    digest = recipe["weights_sha256"]
    if "steps" not in recipe:
        return f"{subject} started from the weights with SHA-256\n`{digest}`."
    return (
        f"{subject} started from an\nearlier adapter ({recipe['steps']} steps of"
        f" {recipe['examples_per_step']} in {recipe['minutes']} minutes, learning rate"
        f" {recipe['learning_rate']}),\nwhose weights had the SHA-256 `{digest}`.\n"
        + _previous(recipe.get("previous"), "That one")
    )


_CARD = """\
# smollm2-135m-apply

A LoRA adapter that teaches a 135M model one thing: to merge a lazy edit into a file. It is what
`apply-service` runs when no other model is named.

- Base: {base} (Apache-2.0), as dequantised from the GGUF with SHA-256
  `{base_sha256}`.
  It fits no other weights; the loader refuses them.
- Adapter: rank {rank}, alpha {alpha}, on all linear layers, float16.
- Licence: Apache-2.0.
- Prompt: the profile `embedded` (every line tokenised by itself, newline first).

## Data

Real edits: files that changed between neighbouring releases of {num_packages} packages in Python,
JavaScript, TypeScript, Rust, C and C++, all under permissive licences
(`training/packages.toml`; the files themselves are not part of this repository). Packages are
split by the hash of their name: {num_train} to train on, {num_test} for testing alone.
Generated, minified and vendored files, rewrites and version bumps are left out.
`snippets` (version {generator_version}) wrote the updates: up to four
lines of context, whole definitions, removal directives, several kinds of markers.

{examples} examples of at most {max_tokens} tokens: the prompts of regions as the service builds
them, and windows of files. {choices}

## Recipe

{steps} steps of {examples_per_step} examples in {minutes} minutes on {place}, AdamW, learning rate
{learning_rate} with warm-up and cosine, frozen weights in bfloat16. The loss is on the answer
alone: {token_weight} a token, {choice_weight} a choice, there the cross entropy among the branches
that are valid, and {served_weight} for the same with the weights of the merge. {previous}

## Figures

Greedy decoding without any constraint, checks or fallback; exact means every token is right.

| measured on | exact | 95 % interval | loss a token |
|---|---|---|---|
| windows of unseen packages {windows}
| the service's questions about unseen packages {served}
| short edits written by hand {short_edits}

Decisions of the service's own questions, where several merges are valid and one is the truth (dev
packages, which the recipe was tuned on):

| decided by | right | 95 % interval |
|---|---|---|
{decisions}

`python -m training.evaluate --base MODEL_DIR --adapter apply_service/models/smollm2-135m-apply`
measures the first table again, `python -m training.decisions` the second.

## Limits

It has seen examples of up to {max_tokens} tokens; on longer files it gets less reliable. Writing
freely, its commonest mistakes are a skipped or repeated line at the place where the update ends and
the file goes on. Languages other than those above are untrained. Take its answers only with the
service's verdict, or look at the diff.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Publish a checkpoint with the figures of a report."""
    parser = argparse.ArgumentParser(prog="python -m training.publish", description=__doc__)
    parser.add_argument("--checkpoint", type=Path, nargs="+", default=[Path("build/train/ckpt")])
    parser.add_argument("--log", type=Path, default=Path("build/train/log.jsonl"))
    parser.add_argument("--report", type=Path, required=True, help="of training.evaluate")
    parser.add_argument("--decisions", type=Path, required=True, help="of training.decisions")
    parser.add_argument("--out", type=Path, default=Path("apply_service/models/smollm2-135m-apply"))
    parser.add_argument("--start-share", type=float, default=0.0, help="of the weights before it")
    chosen = parser.parse_args(arguments)
    report = json.loads(chosen.report.read_text(encoding="utf-8"))
    figures = {
        name: {key: value for key, value in part.items() if key != "wrong_tokens"}
        for name, part in report.items()
    }
    figures["decisions"] = json.loads(chosen.decisions.read_text(encoding="utf-8"))
    start = start_of(chosen.log)
    recipe = read_recipe(chosen.checkpoint, chosen.log, start_share=chosen.start_share)
    weights = mean_weights(chosen.checkpoint, start, chosen.start_share)
    publish(chosen.checkpoint[-1] / CONFIG_NAME, weights, chosen.out, recipe, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
