"""Turns a checkpoint into the adapter that is shipped: fp16 weights, settings and a card.

`python -m training.publish --report REPORT` takes what `training.evaluate` printed as its figures.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file

from apply_service.bench.snippet_writer.snippets import GENERATOR_VERSION
from training.adapter_model import CONFIG_NAME, WEIGHTS_NAME
from training.corpus import TEST_SHARE, split_of
from training.examples import MAX_LONG_TOKENS, MAX_TOKENS
from training.finetune import LEARNING_RATE
from training.mixture import EXAMPLES_PER_STEP
from training.releases import read_packages

BASE_MODEL = "HuggingFaceTB/SmolLM2-135M-Instruct"
BASE_MODEL_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
CARD_NAME = "apply_adapter.json"
MAX_FILE_BYTES = 15 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Recipe:
    """How an adapter was trained, in numbers."""

    steps: int
    minutes: float
    rank: int
    alpha: int
    generator_version: int
    examples_per_step: int = EXAMPLES_PER_STEP
    learning_rate: float = LEARNING_RATE
    max_tokens: int = MAX_TOKENS
    max_long_tokens: int = MAX_LONG_TOKENS


def read_recipe(checkpoint: Path, log: Path) -> Recipe:
    """What the log and the settings of a finished run say."""
    entries = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    last = [entry for entry in entries if "loss" in entry][-1]
    start = [entry for entry in entries if "generator_version" in entry][-1]
    settings = json.loads((checkpoint / CONFIG_NAME).read_text(encoding="utf-8"))
    return Recipe(
        steps=last["step"],
        minutes=round(last["elapsed_s"] / 60, 1),
        rank=settings["r"],
        alpha=settings["lora_alpha"],
        generator_version=start["generator_version"],
    )


def publish(checkpoint: Path, out: Path, recipe: Recipe, figures: dict[str, Any]) -> None:
    """Write the adapter, its record and its card into `out`."""
    out.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(checkpoint / CONFIG_NAME, out / CONFIG_NAME)
    weights = {name: w.half() for name, w in load_file(checkpoint / WEIGHTS_NAME).items()}
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
    num_test = sum(split_of(package.name) == "test" for package in packages)
    return _CARD.format(
        base=BASE_MODEL,
        base_sha256=BASE_MODEL_SHA256,
        num_packages=len(packages),
        num_test=num_test,
        test_share=f"{TEST_SHARE:.0%}",
        windows=_figure(figures["windows"]),
        short_edits=_figure(figures["short_edits"]),
        evaluated_with=GENERATOR_VERSION,
        **asdict(recipe),
    )


def _figure(report: dict[str, Any]) -> str:
    low, high = report["wilson_95"]
    return (
        f"| {report['num_exact']} of {report['n']} ({report['exact']:.0%}) "
        f"| {low:.0%} to {high:.0%} | {report['loss_per_token']:.4f} |"
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
split by the hash of their name: about {test_share} of them ({num_test}) are for testing alone.
Generated, minified and vendored files, rewrites and version bumps are left out.
`apply_service/bench/snippet_writer` (version {generator_version}) wrote the updates: up to four
lines of context, whole definitions, removal directives, several kinds of markers. Cases were cut
to windows of at most {max_tokens} tokens (one in seven up to {max_long_tokens}), prompt and answer
together.

## Recipe

{steps} steps of {examples_per_step} examples in {minutes} minutes on two CPU cores, AdamW, learning
rate {learning_rate} with warm-up and cosine, loss on the answer alone, frozen weights in bfloat16.

## Figures

Greedy decoding without any constraint, checks or fallback; exact means every token is right.

| measured on | exact | 95 % interval | loss a token |
|---|---|---|---|
| windows of unseen packages (generator {evaluated_with}) {windows}
| short edits written by hand {short_edits}

`python -m training.evaluate --base MODEL_DIR --adapter apply_service/models/smollm2-135m-apply`
measures them again.

## Limits

It has seen windows of up to {max_long_tokens} tokens; on longer files it gets less reliable. Its
commonest mistakes are a skipped or repeated line at the place where the update ends and the file
goes on. Languages other than those above are untrained. Take its answers only with the service's
verdict, or look at the diff.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Publish a checkpoint with the figures of a report."""
    parser = argparse.ArgumentParser(prog="python -m training.publish", description=__doc__)
    parser.add_argument("--checkpoint", type=Path, default=Path("build/train/ckpt"))
    parser.add_argument("--log", type=Path, default=Path("build/train/log.jsonl"))
    parser.add_argument("--report", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("apply_service/models/smollm2-135m-apply"))
    chosen = parser.parse_args(arguments)
    report = json.loads(chosen.report.read_text(encoding="utf-8"))
    figures = {
        name: {key: value for key, value in part.items() if key != "wrong_tokens"}
        for name, part in report.items()
    }
    publish(chosen.checkpoint, chosen.out, read_recipe(chosen.checkpoint, chosen.log), figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
