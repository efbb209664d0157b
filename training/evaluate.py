"""Measures how often an adapter, decoding greedily, writes exactly the right answer.

`python -m training.evaluate --base MODEL_DIR --adapter DIR` scores windows of the test split, what
the service asks about its cases, and the short edits that were written by hand. One teacher-forced
pass an example is enough: greedy decoding writes the truth exactly if every argmax is the truth.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch

from apply_service.evaluate.cases.case_file import read_lines
from apply_service.prompts.profile import Profile, load_profile
from training.adapter_model import DTYPES, AdapterModel, mean_loss
from training.case_file import TrainingCase, document_lines, read_training_cases
from training.example import Example
from training.examples import ExampleWindow, make_examples, tokenise
from training.served import served_examples, unscaled_profile

Z_95 = 1.959964
TEST_SEED = 1
MAX_SERVED_TOKENS = 1900


@dataclass(frozen=True, slots=True)
class Share:
    """`num_hits` of `num_trials`, with the 95 % Wilson interval."""

    num_hits: int
    num_trials: int

    @property
    def value(self) -> float:
        """The share, 0 for no trials."""
        return self.num_hits / self.num_trials if self.num_trials else 0.0

    def interval(self) -> tuple[float, float]:
        """Where the true share lies with 95 % confidence."""
        n = self.num_trials
        if not n:
            return 0.0, 1.0
        centre = self.value + Z_95**2 / (2 * n)
        spread = Z_95 * math.sqrt(self.value * (1 - self.value) / n + Z_95**2 / (4 * n * n))
        scale = 1 + Z_95**2 / n
        return max((centre - spread) / scale, 0.0), min((centre + spread) / scale, 1.0)

    def to_json(self) -> dict[str, object]:
        """For reports: share, counts and interval."""
        low, high = self.interval()
        return {
            "exact": round(self.value, 4),
            "num_exact": self.num_hits,
            "n": self.num_trials,
            "wilson_95": [round(low, 4), round(high, 4)],
        }


def read_short_edits(path: Path, profile: Profile) -> Iterator[Example]:
    """Hand-written cases, whole: they fit the model without being cut."""
    for line in read_lines(path):
        case = json.loads(line)
        window = ExampleWindow(
            case_id=case["id"],
            original=document_lines(case["original"]),
            update=document_lines(case["update"]),
            expected=document_lines(case["expected"]),
            style=case.get("style", ""),
        )
        example = tokenise(window, profile)
        if example is not None:
            yield example


def served(cases: Iterable[TrainingCase], profile: Profile) -> Iterator[Example]:
    """The service's questions about cases, with whole answers, up to `MAX_SERVED_TOKENS` long."""
    for case in cases:
        yield from served_examples(
            case, profile, num_updates=1, max_tokens=MAX_SERVED_TOKENS, is_whole=True
        )


def evaluate(
    model: AdapterModel, examples: Iterable[Example], *, num_workers: int = 1
) -> dict[str, object]:
    """Exactness and loss over `examples`, and which of them went wrong in how many tokens."""
    chosen = list(examples)
    with ThreadPoolExecutor(num_workers) as workers:
        scored = list(zip(chosen, workers.map(model.score, chosen), strict=True))
    scores = [score for _, score in scored]
    return {
        **Share(sum(score.is_exact for score in scores), len(scores)).to_json(),
        "loss_per_token": round(mean_loss(scores), 5),
        "answer_tokens": sum(score.num_tokens for score in scores),
        "wrong_tokens": {
            example.case_id: score.num_wrong for example, score in scored if not score.is_exact
        },
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m training.evaluate", description=__doc__)
    parser.add_argument("--base", type=Path, required=True, help="folder of the prepared model")
    parser.add_argument("--adapter", type=Path, default=None, help="default: the bare model")
    parser.add_argument("--cases", type=Path, default=Path("build/cases/test.jsonl"))
    parser.add_argument(
        "--short-edits", type=Path, default=Path("tests/cases/short_edits.jsonl.gz")
    )
    parser.add_argument("--limit", type=int, default=100, help="windows")
    parser.add_argument("--served", type=int, default=200, help="questions of the service")
    parser.add_argument("--dtype", choices=sorted(DTYPES), default="float32")
    parser.add_argument("--threads", type=int, default=2, help="examples at a time")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)
    profile = load_profile("embedded", chosen.base)
    model = AdapterModel.for_use(chosen.base, chosen.adapter, dtype=DTYPES[chosen.dtype])
    cases = read_training_cases(chosen.cases)
    windows = islice(make_examples(cases, profile, seed=TEST_SEED), chosen.limit)
    asked = served(read_training_cases(chosen.cases), unscaled_profile(chosen.base))
    questions = islice(asked, chosen.served)
    report = {
        "short_edits": evaluate(
            model, read_short_edits(chosen.short_edits, profile), num_workers=chosen.threads
        ),
        "windows": evaluate(model, windows, num_workers=chosen.threads),
        "served": evaluate(model, questions, num_workers=chosen.threads),
    }
    print(json.dumps(report, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
