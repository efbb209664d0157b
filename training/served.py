"""The questions that the service asks its model about a case, with the true answers.

A question is a region with its prompt, built by the service's own code. Where the merge is sure,
the grammar forces the answer; where it is not, the model decides, and that is what it must learn.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from apply_service.apply.attempt import attempts_of
from apply_service.apply.edit_request import EditRequest
from apply_service.apply.errors import ApplyError
from apply_service.apply.merge_constraint import MergeConstraint
from apply_service.apply.planning.edit_plan import EditPlan, plan_edit
from apply_service.apply.region_prompt import RegionPrompt, build_prompts
from apply_service.edit.read.snippet_error import SnippetError
from apply_service.edit.regional_update import regional_merge
from apply_service.edit.regions import Region
from apply_service.edit.text.text_file import TextFile, TextFileError
from apply_service.prompts.calibration import UNMEASURED
from apply_service.prompts.embedded import EmbeddedProfile
from apply_service.prompts.profile import Profile, PromptError
from apply_service.prompts.tokenizer import PromptTokenizer
from lookup.constraint import GrammarError
from snippets.terse_snippets import (
    TERSE_GENERATOR_VERSION,
    write_terse_snippet,
)
from snippets.writer import (
    GENERATOR_VERSION,
    WrittenSnippet,
    write_snippet,
)
from snippets.written_segments import WrittenSegment
from training.case_file import TrainingCase, document_lines
from training.example import PRIOR_STEP, Example, TokenChoice

MAX_CASE_BYTES = 1 << 20
# Tokens kept behind the last choice: the first lines of the way that was chosen.
NUM_TAIL_TOKENS = 24


@dataclass(frozen=True, slots=True)
class Question:
    """A region as the model is asked about it, and the tokens of the true answer with its end.

    `choices` is empty if the grammar leaves none or the truth is not one of its merges, which
    `is_path` tells apart. `is_first_guess` says that the merge's heaviest path is the truth.
    """

    region_prompt: RegionPrompt
    answer_token_ids: tuple[int, ...]
    choices: tuple[TokenChoice, ...]
    is_path: bool
    is_first_guess: bool


def unscaled_profile(model_dir: Path) -> EmbeddedProfile:
    """The embedded profile with the merge's weights as they are, whatever a model is worth.

    Raises `TokenizerError`.
    """
    return EmbeddedProfile(PromptTokenizer.from_dir(model_dir), UNMEASURED)


def questions_of(case: TrainingCase, profile: Profile) -> list[Question]:
    """What the first attempt asks about a case; empty if it needs no model or has no known answer.

    A region is left out if the true change reaches over its border.
    """
    try:
        plan = plan_edit(_request(case), max_file_bytes=MAX_CASE_BYTES)
        if plan.decision is not None or plan.merge is None or plan.merge.best is None:
            return []
        attempt = next(attempts_of(plan, max_region_tokens=profile.max_region_tokens))
        prompts = build_prompts(plan, profile, regions=attempt.regions, scope=attempt.scope)
        expected = TextFile.from_text(case.expected).lines
        found = [_question(plan, one, expected, len(prompts) == 1) for one in prompts]
    except (ApplyError, SnippetError, TextFileError, PromptError):
        return []
    return [question for question in found if question is not None]


def _request(case: TrainingCase) -> EditRequest:
    return EditRequest(
        original=TextFile.from_text(case.original),
        update=case.update,
        path=case.path,
        constraint="merge",
    )


def _question(
    plan: EditPlan, asked: RegionPrompt, expected: Sequence[str], is_only: bool
) -> Question | None:
    assert plan.merge is not None, "the caller has looked"
    number = plan.merge.number_of(expected)
    lines: Sequence[str] | None = None
    if number is not None:
        lines = regional_merge(plan.original_lines, plan.merge.path(number), asked.region)
    if lines is None and is_only:
        lines = _cut_region(plan.original_lines, expected, asked.region)
    if lines is None:
        return None
    prompt = asked.prompt
    answer = prompt.answer_token_ids(lines) + prompt.end_token_ids
    if asked.constraint is None:
        return Question(asked, answer, (), is_path=False, is_first_guess=False)
    grammar = asked.constraint.grammar()
    is_first_guess = grammar.draft().token_ids == answer
    try:
        grammar.advance_all(answer)
    except GrammarError:
        return Question(asked, answer, (), is_path=False, is_first_guess=False)
    choices = choices_of(asked.constraint, answer)
    return Question(asked, answer, choices, is_path=True, is_first_guess=is_first_guess)


def choices_of(constraint: MergeConstraint, answer: Sequence[int]) -> tuple[TokenChoice, ...]:
    """The choices along a valid answer. Raises `TokenNotAllowedError`."""
    grammar = constraint.grammar()
    choices = []
    place = 0
    for decision in constraint.grammar().decisions(answer):
        grammar.advance_all(answer[place : decision.offset])
        place = decision.offset
        log_prior = (round(one / PRIOR_STEP) * PRIOR_STEP for one in grammar.log_prior())
        allowed = tuple(token_id for token_id, _ in decision.alternatives)
        choices.append(TokenChoice(decision.offset, allowed, tuple(log_prior)))
    return tuple(choices)


def _cut_region(
    original: Sequence[str], expected: Sequence[str], region: Region
) -> list[str] | None:
    """The part of `expected` that stands for a region if all around it is unchanged."""
    num_after = len(original) - region.end
    end = len(expected) - num_after
    if end < region.start or list(expected[: region.start]) != list(original[: region.start]):
        return None
    if list(expected[end:]) != list(original[region.end :]):
        return None
    return list(expected[region.start : end])


def to_example(
    question: Question, case: TrainingCase, *, max_tokens: int, is_whole: bool = False
) -> Example | None:
    """A question as a training sequence; None if it is longer than `max_tokens`.

    What follows the last choice is cut off, so that little time goes into forced tokens, unless
    the answer is to be whole.
    """
    prompt = question.region_prompt.prompt.token_ids
    answer = question.answer_token_ids
    choices = question.choices
    if choices and not is_whole:
        answer = answer[: choices[-1].offset + 1 + NUM_TAIL_TOKENS]
    if len(prompt) + len(answer) > max_tokens:
        return None
    return Example(case.id, case.style, tuple(prompt), tuple(answer), choices)


def rewrite(case: TrainingCase, number: int) -> TrainingCase | None:
    """The same edit with another update; `number` 0 is the case itself."""
    if number == 0:
        return case
    snippet = write_snippet(
        document_lines(case.original),
        document_lines(case.expected),
        language=case.language,
        rng=random.Random(f"{GENERATOR_VERSION}:{number}:{case.id}"),
    )
    return None if snippet is None else _with_update(case, snippet)


def rewrite_tersely(
    case: TrainingCase, number: int
) -> tuple[TrainingCase, tuple[WrittenSegment, ...]] | None:
    """The same edit with one of many brief updates, and where its segments truly stand."""
    snippet = write_terse_snippet(
        document_lines(case.original),
        document_lines(case.expected),
        language=case.language,
        rng=random.Random(f"terse:{TERSE_GENERATOR_VERSION}:{number}:{case.id}"),
    )
    return None if snippet is None else (_with_update(case, snippet), snippet.segments)


def _with_update(case: TrainingCase, snippet: WrittenSnippet) -> TrainingCase:
    return replace(case, update="\n".join(snippet.lines) + "\n", style=snippet.style)


def served_examples(
    case: TrainingCase,
    profile: Profile,
    *,
    num_updates: int,
    max_tokens: int,
    num_terse: int = 0,
    is_whole: bool = False,
) -> Iterator[Example]:
    """The different questions about a case and its rewritten updates that are short enough.

    Of the updates `num_terse` more are brief ones.
    """
    seen = set[tuple[int, ...]]()
    brief = filter(None, (rewrite_tersely(case, number) for number in range(num_terse)))
    updates = [rewrite(case, number) for number in range(num_updates)]
    for written in filter(None, [*updates, *(one for one, _ in brief)]):
        for question in questions_of(written, profile):
            example = to_example(question, written, max_tokens=max_tokens, is_whole=is_whole)
            if example is not None and example.prompt_token_ids not in seen:
                seen.add(example.prompt_token_ids)
                yield example
