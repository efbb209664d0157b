"""Measures how often a model decides rightly at a choice, against the first guess.

`python -m training.decisions --base MODEL_DIR --adapter DIR` asks about the dev cases what the
service asks, and scores whole answers: at every choice the log-probability of the branch among
those that the grammar allows, summed up.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from apply_service.apply.merge_constraint import MergeConstraint
from apply_service.prompts.merge_form import AnyMergeGrammar
from apply_service.prompts.profile import Profile
from training.adapter_model import DTYPES, AdapterModel, with_prior
from training.case_file import TrainingCase, read_training_cases
from training.evaluate import Share
from training.example import Example
from training.served import Question, choices_of, questions_of, unscaled_profile

MAX_CANDIDATES = 8
_MAX_OPEN_WAYS = 64
# How much a unit of the merge's own weight counts against a nat of the model.
MERGE_SHARES = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One valid answer: what the model and the merge think of it.

    `log_prob` sums the branches taken; `is_greedy` says that each of them was the likeliest, and
    `is_served` that it was with the weights of the merge added. `weight` is that of the heaviest
    merge that writes the answer.
    """

    log_prob: float
    weight: float
    is_greedy: bool
    is_served: bool
    is_truth: bool
    is_first_guess: bool


@dataclass(frozen=True, slots=True)
class Decided:
    """A question with a choice, and its candidates; `is_known` if the truth is among them."""

    case_id: str
    style: str
    num_prompt_tokens: int
    candidates: tuple[Candidate, ...]

    @property
    def is_known(self) -> bool:
        """True if one of the candidates is the truth."""
        return any(one.is_truth for one in self.candidates)


def answers_of(grammar: AnyMergeGrammar, limit: int = MAX_CANDIDATES) -> list[tuple[int, ...]]:
    """At most `limit` different valid answers, those with the fewest choices first."""
    found: list[tuple[int, ...]] = []
    open_ways: list[tuple[tuple[int, ...], Any]] = [((), grammar.snapshot())]
    while open_ways and len(found) < limit and len(open_ways) <= _MAX_OPEN_WAYS:
        written, state = open_ways.pop(0)
        grammar.restore(state)
        run = grammar.forced_run()
        grammar.advance_all(run)
        written = (*written, *run)
        allowed = grammar.allowed_next()
        if not allowed:
            found.append(written)
        here = grammar.snapshot()
        for token_id in allowed:
            grammar.restore(here)
            grammar.advance(token_id)
            open_ways.append(((*written, token_id), grammar.snapshot()))
    return found


def decide(question: Question, case: TrainingCase, model: AdapterModel) -> Decided | None:
    """The candidates of a question; None if there is no choice."""
    constraint = question.region_prompt.constraint
    if constraint is None:
        return None
    answers = answers_of(constraint.grammar())
    first_guess = tuple(constraint.grammar().draft().token_ids)
    known = [question.answer_token_ids] if question.is_path else []
    answers = list(dict.fromkeys([first_guess, *known, *answers]))
    if len(answers) < 2:
        return None
    prompt = question.region_prompt.prompt.token_ids
    examples = [_branches(constraint, prompt, answer) for answer in answers]
    candidates = []
    for answer, example, branches in zip(
        answers, examples, model.branch_log_probs(examples), strict=True
    ):
        served = with_prior(branches, example)
        candidates.append(
            Candidate(
                log_prob=sum(float(found[taken]) for found, taken in branches),
                weight=_weight(constraint, answer),
                is_greedy=all(int(found.argmax()) == taken for found, taken in branches),
                is_served=all(int(found.argmax()) == taken for found, taken in served),
                is_truth=answer == question.answer_token_ids,
                is_first_guess=answer == first_guess,
            )
        )
    return Decided(case.id, case.style, len(prompt), tuple(candidates))


def _branches(constraint: MergeConstraint, prompt: Sequence[int], answer: Sequence[int]) -> Example:
    """An answer up to its last choice."""
    choices = choices_of(constraint, answer)
    return Example("", "", tuple(prompt), tuple(answer[: choices[-1].offset + 1]), choices)


def _weight(constraint: MergeConstraint, answer: Sequence[int]) -> float:
    grammar = constraint.grammar()
    grammar.advance_all(answer)
    return constraint.rules.texts[grammar.chosen()].weight


def decide_all(
    cases: Iterable[TrainingCase],
    profile: Profile,
    model: AdapterModel,
    *,
    max_prompt_tokens: int | None = None,
) -> Iterator[Decided]:
    """Every question with a choice that the cases lead to, or only those with short prompts."""
    for case in cases:
        for question in questions_of(case, profile):
            num_tokens = len(question.region_prompt.prompt.token_ids)
            if max_prompt_tokens is not None and num_tokens > max_prompt_tokens:
                continue
            decided = decide(question, case, model)
            if decided is not None:
                yield decided


def decision_report(decided: Sequence[Decided]) -> dict[str, object]:
    """Shares of right decisions, over the questions whose truth is one of the candidates."""
    known = [one for one in decided if one.is_known]
    hard = [one for one in known if not _is_right(one, _is_first_guess)]
    easy = [one for one in known if _is_right(one, _is_first_guess)]
    shares = {
        "known": Share(len(known), len(decided)),
        "first_guess": Share(len(easy), len(known)),
        "greedy": _share(known, lambda candidate: candidate.is_greedy),
        "served": _share(known, lambda candidate: candidate.is_served),
        "summed_where_first_guess_is_wrong": _share(hard, _combined(0.0)),
        "summed_where_first_guess_is_right": _share(easy, _combined(0.0)),
    }
    for merge_share in MERGE_SHARES:
        name = f"summed_with_{merge_share:g}_merge" if merge_share else "summed"
        shares[name] = _share(known, _combined(merge_share))
    return {name: share.to_json() for name, share in shares.items()}


def _is_first_guess(candidate: Candidate) -> float:
    return candidate.is_first_guess


def _combined(merge_share: float) -> Callable[[Candidate], float]:
    return lambda candidate: candidate.log_prob + merge_share * candidate.weight


def _share(decided: Sequence[Decided], score: Callable[[Candidate], float]) -> Share:
    return Share(sum(_is_right(one, score) for one in decided), len(decided))


def _is_right(decided: Decided, score: Callable[[Candidate], float]) -> bool:
    """True if the candidate with the highest score is the truth."""
    return max(decided.candidates, key=score).is_truth


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the shares as JSON."""
    parser = argparse.ArgumentParser(prog="python -m training.decisions", description=__doc__)
    parser.add_argument("--base", type=Path, required=True, help="folder of the prepared model")
    parser.add_argument("--adapter", type=Path, default=None, help="default: the bare model")
    parser.add_argument("--cases", type=Path, default=Path("build/cases/dev.jsonl"))
    parser.add_argument("--every", type=int, default=1, help="only each n-th case")
    parser.add_argument("--max-prompt-tokens", type=int, default=None, help="leave longer out")
    parser.add_argument("--dtype", choices=sorted(DTYPES), default="float32")
    parser.add_argument("--records", type=Path, default=None, help="where to write each question")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)
    profile = unscaled_profile(chosen.base)
    model = AdapterModel.for_use(chosen.base, chosen.adapter, dtype=DTYPES[chosen.dtype])
    cases = islice(read_training_cases(chosen.cases), 0, None, chosen.every)
    decided = []
    with (chosen.records or Path(os.devnull)).open("w", encoding="utf-8") as records:
        for one in decide_all(cases, profile, model, max_prompt_tokens=chosen.max_prompt_tokens):
            decided.append(one)
            records.write(json.dumps(asdict(one)) + "\n")
            records.flush()
    print(json.dumps(decision_report(decided), indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
