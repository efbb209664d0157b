"""Writes the training set tokenised, as small as can be, for a machine without a network.

`python -m training.corpus_pack --base MODEL_DIR` reads `build/cases/{train,dev}.jsonl` and writes
`build/pack/{train,dev}.pack`.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

from apply_service.prompts.profile import Profile
from snippets.writer import GENERATOR_VERSION
from training.case_file import TrainingCase, read_training_cases
from training.example import Example
from training.examples import MAX_LONG_TOKENS, cut_window, make_examples
from training.pack import write_pack
from training.served import served_examples, unscaled_profile

MAX_TOKENS = 900
_WINDOW_TOKENS = (200, 560)


def window_cases(case: TrainingCase, count: int) -> Iterator[TrainingCase]:
    """Parts of a case as cases of their own, so that their questions are short."""
    for number in range(count):
        rng = random.Random(f"{GENERATOR_VERSION}:window:{number}:{case.id}")
        window = cut_window(case, max_tokens=rng.randint(*_WINDOW_TOKENS), rng=rng)
        if window is not None:
            yield replace(
                case,
                original="\n".join(window.original) + "\n",
                update="\n".join(window.update) + "\n",
                expected="\n".join(window.expected) + "\n",
                style=window.style,
            )


def examples_of(
    case: TrainingCase,
    profile: Profile,
    *,
    num_updates: int,
    max_tokens: int,
    num_terse: int = 0,
    is_whole: bool = False,
) -> Iterator[Example]:
    """All that is learnt from one case, none twice.

    Questions about the whole file as served, those with a choice about parts of it, and parts
    whose answer is written without any constraint. With `is_whole` answers are not cut off behind
    their last choice, and no question is about parts.
    """
    seen = set[tuple[int, ...]]()
    for part in (case, *window_cases(case, 0 if is_whole else num_updates)):
        updates = num_updates if part is case else 1
        for example in served_examples(
            part,
            profile,
            num_updates=updates,
            num_terse=num_terse if part is case else 0,
            max_tokens=max_tokens,
            is_whole=is_whole,
        ):
            if example.prompt_token_ids not in seen and (part is case or example.choices):
                seen.add(example.prompt_token_ids)
                yield example
    long = max_tokens if is_whole else MAX_LONG_TOKENS
    for example in make_examples([case], profile, per_case=num_updates, max_long_tokens=long):
        if example.prompt_token_ids not in seen and len(example) <= max_tokens:
            seen.add(example.prompt_token_ids)
            yield example


def long_examples_of(
    case: TrainingCase, profile: Profile, *, num_updates: int, max_tokens: int
) -> Iterator[Example]:
    """Files and large parts of them, written freely, as scope `file` without a constraint asks."""
    return (
        example
        for example in make_examples(
            [case], profile, per_case=num_updates, max_long_tokens=max_tokens, long_share=1.0
        )
        if len(example) > MAX_TOKENS
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Write both packs and say how large they are."""
    parser = argparse.ArgumentParser(prog="python -m training.corpus_pack", description=__doc__)
    parser.add_argument("--base", type=Path, required=True, help="folder of the prepared model")
    parser.add_argument("--cases", type=Path, default=Path("build/cases"))
    parser.add_argument("--out", type=Path, default=Path("build/pack"))
    parser.add_argument("--updates", type=int, default=4, help="updates and parts of a case")
    parser.add_argument("--max-tokens", type=int, default=MAX_TOKENS)
    parser.add_argument("--num-terse", type=int, default=0, help="brief updates of a case besides")
    parser.add_argument("--whole", action="store_true", help="do not cut answers off")
    parser.add_argument(
        "--long", action="store_true", help=f"only windows of more than {MAX_TOKENS} tokens"
    )
    parser.add_argument("--share", type=float, default=1.0, help="of the cases; a rehearsal: 0.01")
    chosen = parser.parse_args(arguments)
    if chosen.long and chosen.max_tokens <= MAX_TOKENS:
        parser.error(
            f"--max-tokens {chosen.max_tokens}: with --long more than {MAX_TOKENS} are needed"
        )
    profile = unscaled_profile(chosen.base)
    for split, num_updates in (("train", chosen.updates), ("dev", 1)):
        cases = list(read_training_cases(chosen.cases / f"{split}.jsonl"))
        random.Random(0).shuffle(cases)
        kept = cases[: max(1, round(len(cases) * chosen.share))]
        path = chosen.out / f"{split}.pack"
        make: Callable[..., Iterator[Example]] = long_examples_of
        if not chosen.long:
            make = partial(examples_of, num_terse=chosen.num_terse, is_whole=chosen.whole)
        examples = chain.from_iterable(
            make(case, profile, num_updates=num_updates, max_tokens=chosen.max_tokens)
            for case in kept
        )
        num_examples = write_pack(path, examples)
        print(f"{path}: {num_examples} examples, {path.stat().st_size / 2**20:.1f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
