"""Every kind of drafter against no drafts at all: many texts, greedy and sampled, token for token.

`python tests/oracle.py engine.drafter_texts` runs a tiny random model with a random checkpoint of
each kind, all texts beside each other. It prints a row for each kind, and exits with 1 if any text
differs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from drafter_checkpoints import DRAFTERS, make_drafter_config
from drafter_texts import SAMPLINGS, make_requests, texts
from engine_runs import running_engine
from tiny_model import write_tiny_model

from apply_service.prompts.tokenizer import PromptTokenizer
from batching.config import EngineConfig, SchedulerConfig
from batching.events import ReferenceStats


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--texts", type=int, default=210, help="of each kind and sampling")
    parser.add_argument("--tokens", type=int, default=20, help="of each text")
    parser.add_argument("--kind", action="append", choices=list(DRAFTERS), help="default all")
    options = parser.parse_args()
    num_different = 0
    with tempfile.TemporaryDirectory() as folder:
        model_dir = Path(folder) / "model"
        write_tiny_model(model_dir, seed=0)
        plain = run(model_dir, None, options)
        print("| drafter | greedy equal | sampled equal | drafted | accepted |")
        print("|---|---|---|---|---|")
        for kind in options.kind or DRAFTERS:
            own = run(model_dir, Path(folder), options, kind=kind)
            equal = [
                sum(one == other for one, other in zip(own.texts[name], expected, strict=True))
                for name, expected in plain.texts.items()
            ]
            num_different += 2 * options.texts - sum(equal)
            cells = (kind, *(f"{count} of {options.texts}" for count in equal))
            print(
                "| " + " | ".join(map(str, (*cells, own.drafted, own.accepted))) + " |", flush=True
            )
    return 1 if num_different else 0


class Run:
    """Texts by sampling, and how many of the drafter's tokens were verified and held."""

    def __init__(self, texts: dict[str, list[list[int]]], drafted: int, accepted: int) -> None:
        self.texts = texts
        self.drafted = drafted
        self.accepted = accepted


def run(
    model_dir: Path, folder: Path | None, options: argparse.Namespace, *, kind: str = ""
) -> Run:
    """With a drafter whose checkpoint goes to `folder`, or without speculation."""
    drafters = () if folder is None else (make_drafter_config(kind, model_dir, folder),)
    config = EngineConfig(
        model_path=model_dir,
        kv_memory_bytes=16 << 20,
        drafters=drafters,
        scheduler=SchedulerConfig(max_waiting=options.texts, max_running=64),
    )
    with running_engine(config, tokens=PromptTokenizer.from_dir(model_dir)) as running:
        answers = {
            name: texts(
                running,
                make_requests(
                    name,
                    count=options.texts,
                    has_drafts=folder is not None,
                    max_tokens=options.tokens,
                ),
            )
            for name in SAMPLINGS
        }
        of_drafter = running.engine.stats().by_reference.get(kind, ReferenceStats(0, 0))
    return Run(answers, of_drafter.drafted, of_drafter.accepted)


if __name__ == "__main__":
    sys.exit(main())
