"""Tasks of the concurrency bench: real edits, and code that no draft foresees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from apply_service.apply.attempt import attempts_of
from apply_service.apply.engine_requests import drafts_of
from apply_service.apply.region_prompt import build_prompts
from apply_service.edit.regions import estimate_tokens
from apply_service.edit.text.text_file import TextFile, TextFileError
from apply_service.evaluate.cases.case_file import Case
from apply_service.evaluate.cases.planned_case import plan_case
from apply_service.prompts.profile import Profile, Prompt, PromptError, PromptRequest
from batching.request import EngineRequest, SamplingParams

Workload = Literal["new", "edits"]
WORKLOADS: tuple[Workload, ...] = ("new", "edits")

# How much of a text the workload `new` takes, of the tokens that a prompt may have.
_SHOWN_SHARE = 0.5
# So many cases further on is another file, mostly of another package.
_FAR_CASE = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One prompt with what drafts may be copied from, and how its answer is drawn."""

    prompt: Prompt
    predicted_token_ids: tuple[int, ...]
    temperature: float
    rival_token_ids: tuple[int, ...] = ()

    def request(
        self, request_id: str, *, max_tokens: int, seed: int, max_draft_tokens: int
    ) -> EngineRequest:
        """A request for the answer, with nothing in the prefix cache; 0 draft tokens: no drafts."""
        return EngineRequest(
            request_id=request_id,
            prompt_token_ids=self.prompt.token_ids,
            sampling=SamplingParams(
                max_tokens=max_tokens,
                temperature=self.temperature,
                seed=seed,
                stop_token_ids=self.prompt.stop_token_ids,
            ),
            proposer=(
                drafts_of(
                    self.prompt,
                    predicted_token_ids=self.predicted_token_ids,
                    rival_token_ids=self.rival_token_ids,
                )
                if max_draft_tokens
                else None
            ),
            max_draft_tokens=max_draft_tokens,
            cache_salt=request_id.encode(),
        )


def make_tasks(
    workload: Workload,
    cases: Sequence[Case],
    profile: Profile,
    *,
    max_prompt_tokens: int,
    limit: int,
) -> list[Task]:
    """The first `limit` tasks whose prompts are no longer than that; there may be fewer.

    `edits`: the regions of real edits as the service asks for them, greedily. `new`: the beginning
    of a file to go on with at temperature 1, where drafts know only another file and an update of
    it, so that hardly any holds.
    """
    tasks = (
        _edits(cases, profile)
        if workload == "edits"
        else _new_code(cases, profile, max_prompt_tokens)
    )
    short = (task for task in tasks if len(task.prompt.token_ids) <= max_prompt_tokens)
    return list(islice(short, limit))


def _edits(cases: Sequence[Case], profile: Profile) -> Iterator[Task]:
    for case in cases:
        try:
            plan = plan_case(case).plan
        except TextFileError:
            continue
        if plan is None or plan.merge is None or plan.decision is not None:
            continue
        for attempt in islice(attempts_of(plan, max_region_tokens=profile.max_region_tokens), 1):
            try:
                prompts = build_prompts(plan, profile, regions=attempt.regions, scope=attempt.scope)
            except PromptError:
                continue
            for built in prompts:
                yield Task(
                    prompt=built.prompt,
                    predicted_token_ids=built.predicted_token_ids,
                    temperature=0.0,
                    rival_token_ids=built.rival_token_ids,
                )


def _new_code(cases: Sequence[Case], profile: Profile, max_prompt_tokens: int) -> Iterator[Task]:
    """Drafts have a file and an update to copy from; the model goes on with a third one's code."""
    for index, case in enumerate(cases):
        update, shown = (cases[(index + step * _FAR_CASE) % len(cases)] for step in (1, 2))
        if len({case.original, update.original, shown.original}) < 3:
            continue
        try:
            references = _prompt_of(case.original, update.update, profile, max_prompt_tokens)
            prompt = _prompt_of(shown.original, update.update, profile, max_prompt_tokens)
        except (PromptError, TextFileError):
            continue
        if references.original_token_ids and prompt.original_token_ids:
            yield Task(
                prompt=replace(references, token_ids=prompt.original_token_ids),
                predicted_token_ids=(),
                temperature=1.0,
            )


def _prompt_of(original: str, update: str, profile: Profile, max_tokens: int) -> Prompt:
    update_lines = _first_lines(update, _SHOWN_SHARE * max_tokens)
    return profile.build(
        PromptRequest(
            original_lines=_first_lines(original, _SHOWN_SHARE * max_tokens),
            update_lines=update_lines,
            segments=[update_lines],
        )
    )


def _first_lines(text: str, max_tokens: float) -> list[str]:
    """Leading lines, by estimate no more than `max_tokens`."""
    lines: list[str] = []
    for line in TextFile.from_text(text).lines:
        max_tokens -= estimate_tokens(line)
        if max_tokens < 0:
            break
        lines.append(line)
    return lines
