"""A model as edits use it: attempts with their prompts, and their requests to the engine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from apply_service.apply.admission import Admission
from apply_service.apply.attempt import Attempt, attempts_of
from apply_service.apply.edit_request import EditRequest
from apply_service.apply.engine_requests import default_max_tokens, drafts_of
from apply_service.apply.errors import PromptTooLongError
from apply_service.apply.planning.edit_plan import EditPlan
from apply_service.apply.region_prompt import RegionPrompt, build_prompts
from apply_service.prompts.profile import Profile
from batching.async_engine import AsyncEngine, RequestHandle
from batching.events import RequestStats
from batching.request import EngineRequest, SamplingParams


@dataclass(frozen=True, slots=True)
class AskedAttempt:
    """An attempt whose requests were submitted to the engine, one a region, at `asked_at`."""

    attempt: Attempt
    handles: tuple[RequestHandle, ...]
    asked_at: float

    def cancel(self) -> None:
        """Withdraw the requests that are still running."""
        for handle in self.handles:
            handle.cancel()


class EditModel:
    """One engine with one prompt profile; `admission` lets the requests of edits into it.

    `max_draft_tokens` is both the default and the most that a request may ask for.
    """

    def __init__(
        self, engine: AsyncEngine, profile: Profile, *, admission: Admission, max_draft_tokens: int
    ) -> None:
        self._engine = engine
        self._profile = profile
        self._admission = admission
        self._max_draft_tokens = max_draft_tokens

    async def model_for(self, _plan: EditPlan) -> EditModel:
        """This model, which needs no waiting."""
        return self

    def attempts(self, plan: EditPlan) -> Iterator[Attempt]:
        """The attempts that fit the model, with their prompts; the first one that must.

        Each takes a while, so take them beside the event loop. Attempts come last in which the
        model must write freely though valid merges were wanted. Raises PromptTooLongError, with the
        figures of the smallest one, if none fits.
        """
        smallest: PromptTooLongError | None = None
        num_fitting = 0
        free: list[Attempt] = []
        for attempt in attempts_of(plan, max_region_tokens=self._profile.max_region_tokens):
            prompts = build_prompts(
                plan, self._profile, regions=attempt.regions, scope=attempt.scope
            )
            try:
                for prompt in prompts:
                    self._answer_limit(plan.edit, prompt)
            except PromptTooLongError as error:
                smallest = error if smallest is None else min(smallest, error, key=_value)
                continue
            num_fitting += 1
            is_free = any(prompt.lacks_constraint for prompt in prompts)
            prepared = replace(attempt, prompts=prompts, lacks_constraint=is_free)
            if is_free:
                free.append(prepared)
            else:
                yield prepared
        yield from free
        if smallest is not None and not num_fitting:
            raise smallest

    def submit(self, plan: EditPlan, attempt: Attempt) -> AskedAttempt:
        """Submit all requests of an attempt to the engine or, if it refuses one, none.

        Raises EngineError. To be called on the event loop.
        """
        handles = self._admission.submit(
            [self._engine_request(plan, prompt) for prompt in attempt.prompts],
            num_answer_tokens=sum(
                len(one.predicted_token_ids or one.prompt.original_token_ids)
                for one in attempt.prompts
            ),
        )
        return AskedAttempt(attempt, handles, time.monotonic())

    def observe(self, stats: RequestStats) -> None:
        """Record the figures of a finished request."""
        self._admission.observe(stats)

    def _answer_limit(self, edit: EditRequest, region_prompt: RegionPrompt) -> int:
        """The most tokens of an answer. Raises PromptTooLongError with tokens and limit."""
        info, prompt = self._engine.model_info, region_prompt.prompt
        limit = min(info.max_position, info.num_kv_tokens)
        num_predicted = len(region_prompt.predicted_token_ids or prompt.original_token_ids)
        num_answer = edit.sampling.max_tokens or num_predicted + len(prompt.end_token_ids)
        num_needed = len(prompt.token_ids) + num_answer
        if num_needed > limit:
            raise PromptTooLongError(
                f"the prompt has {len(prompt.token_ids)} tokens and its answer about {num_answer},"
                f" together {num_needed}",
                value=num_needed,
                limit=limit,
                remedy=f"{_shorter(edit)}, or use a longer context (the model has"
                f" {info.max_position} tokens, its KV cache {info.num_kv_tokens}; raise kv_memory"
                " for more)",
            )
        if edit.sampling.max_tokens is not None:
            return edit.sampling.max_tokens
        ceiling = limit if edit.max_answer_tokens is None else edit.max_answer_tokens
        return min(default_max_tokens(prompt), limit - len(prompt.token_ids), ceiling)

    def _engine_request(self, plan: EditPlan, region_prompt: RegionPrompt) -> EngineRequest:
        edit, sampling = plan.edit, plan.edit.sampling
        prompt, region = region_prompt.prompt, region_prompt.region
        max_draft_tokens = self._max_draft_tokens
        if edit.max_draft_tokens is not None:
            max_draft_tokens = min(edit.max_draft_tokens, max_draft_tokens)
        constraint = region_prompt.constraint
        proposer = None
        if constraint is None and max_draft_tokens:
            proposer = drafts_of(
                prompt,
                predicted_token_ids=region_prompt.predicted_token_ids,
                rival_token_ids=region_prompt.rival_token_ids,
            )
        return EngineRequest(
            request_id=f"{plan.request_id}-{region.start}-{region.end}",
            prompt_token_ids=tuple(prompt.token_ids),
            sampling=SamplingParams(
                max_tokens=self._answer_limit(edit, region_prompt),
                temperature=sampling.temperature,
                top_k=sampling.top_k,
                top_p=sampling.top_p,
                seed=sampling.seed,
                stop_token_ids=prompt.stop_token_ids,
                acceptance=sampling.acceptance,
            ),
            proposer=proposer,
            constraint=None if constraint is None else constraint.recipe(),
            max_draft_tokens=max_draft_tokens,
            priority=edit.priority,
            cache_salt=edit.cache_salt,
            deadline=plan.deadline,
            is_traced=edit.wants_trace,
        )


def _value(error: PromptTooLongError) -> float:
    return error.value


def _shorter(edit: EditRequest) -> str:
    """Advice for a caller whose prompt is too long."""
    if edit.sampling.max_tokens is not None:
        return "lower max_tokens"
    if edit.scope == "file":
        return 'leave scope at "auto" to rewrite only the changed parts'
    if not edit.has_fallback:
        return 'leave checks "on" to allow a merge without the model, or send one change at a time'
    return "send one change at a time, with an unchanged line before and after it"
