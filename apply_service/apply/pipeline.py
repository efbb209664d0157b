"""The way of one edit: text → prompts → engine → answers → file → verdict, for all callers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from apply_service.apply.admission import Admission
from apply_service.apply.apply_run import ApplyRun, AttemptSupply, RunObserver, SubmittedAttempt
from apply_service.apply.attempt import attempts_of
from apply_service.apply.conclusion import try_conclude_unasked
from apply_service.apply.edit_request import EditRequest
from apply_service.apply.engine_requests import default_max_tokens, make_proposer
from apply_service.apply.errors import PromptTooLongError
from apply_service.apply.planning.edit_plan import EditPlan
from apply_service.apply.planning.intake import Intake
from apply_service.apply.planning.text_work import TextWork, WorkTerms
from apply_service.apply.region_prompt import PreparedAttempt, RegionPrompt, build_prompts
from apply_service.observe.request_record import stage
from apply_service.prompts.profile import Profile
from batching.async_engine import AsyncEngine
from batching.request import EngineRequest, SamplingParams


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineLimits:
    """Limits of one request; `max_draft_tokens` is the default and the most a request may ask."""

    max_file_bytes: int
    max_draft_tokens: int


class ApplyPipeline:
    """Plans edits and runs them on one engine with one prompt profile.

    `observer` is told of every request to the engine that finishes and of every outcome, once.
    `text_work` is where files are planned and results judged, by default in threads. `intake` is
    what plans them and `admission` what lets them into the engine, by default each its own.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        profile: Profile,
        limits: PipelineLimits,
        observer: RunObserver | None = None,
        text_work: TextWork | None = None,
        *,
        intake: Intake | None = None,
        admission: Admission | None = None,
    ) -> None:
        self._engine = engine
        self._profile = profile
        self._limits = limits
        self._observer = observer
        self._text_work = text_work or TextWork()
        self._intake = intake or Intake(
            max_file_bytes=limits.max_file_bytes, observer=observer, text_work=self._text_work
        )
        self._admission = admission or Admission(engine)

    async def start(self, edit: EditRequest) -> ApplyRun:
        """Check, plan and submit an edit.

        Raises ApplyError, SnippetError, TextFileError, PromptError or EngineError before anything
        is computed.
        """
        return await self.run(await self._intake.plan(edit))

    async def run(self, plan: EditPlan) -> ApplyRun:
        """Submit a plan, unless it needs no model. Raises what `ask` raises."""
        return await self._intake.try_alone(plan) or await self.ask(plan)

    async def ask(self, plan: EditPlan) -> ApplyRun:
        """Submit a plan that needs the model. Raises ApplyError, PromptError or EngineError."""
        supply = AttemptSupply(
            prepare=partial(next, self._prepared_attempts(plan), None),
            submit=partial(self._submit, plan),
            observe=self._admission.observe,
        )
        run = ApplyRun(plan, supply, observer=self._observer, text_work=self._text_work)
        try:
            await run.begin()
        except PromptTooLongError as error:
            with stage("verdict"):
                terms = WorkTerms.of(plan.edit, started_at=plan.started_at)
                merged = await self._text_work.run(terms, try_conclude_unasked, plan, error)
            if merged is None:
                raise
            return ApplyRun(plan, decided=merged, observer=self._observer)
        return run

    def _prepared_attempts(self, plan: EditPlan) -> Iterator[PreparedAttempt]:
        """The attempts that fit the model, with their prompts; the first one that must.

        Those come last in which the model must write freely though valid merges were wanted.
        Raises PromptTooLongError, with the figures of the smallest one, if none fits.
        """
        smallest: PromptTooLongError | None = None
        num_fitting = 0
        free: list[PreparedAttempt] = []
        for attempt in attempts_of(plan, max_region_tokens=self._profile.max_region_tokens):
            prompts = build_prompts(plan, attempt, self._profile)
            try:
                for prompt in prompts:
                    self._answer_limit(plan.edit, prompt)
            except PromptTooLongError as error:
                smallest = error if smallest is None else min(smallest, error, key=_value)
                continue
            num_fitting += 1
            prepared = PreparedAttempt(attempt, prompts)
            if prepared.lacks_constraint:
                free.append(prepared)
            else:
                yield prepared
        yield from free
        if smallest is not None and not num_fitting:
            raise smallest

    def _submit(self, plan: EditPlan, prepared: PreparedAttempt) -> SubmittedAttempt:
        """All requests of an attempt or, if the engine refuses one, none."""
        handles = self._admission.submit(
            [self._engine_request(plan, prompt) for prompt in prepared.prompts],
            num_answer_tokens=sum(
                len(one.predicted_token_ids or one.prompt.original_token_ids)
                for one in prepared.prompts
            ),
        )
        return SubmittedAttempt(prepared, handles)

    def _answer_limit(self, edit: EditRequest, region_prompt: RegionPrompt) -> int:
        """Tokens that the answer may have. Raises PromptTooLongError with tokens and limit."""
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
                f" {info.max_position} tokens, its KV cache {info.num_kv_tokens}: see kv_memory)",
            )
        if edit.sampling.max_tokens is not None:
            return edit.sampling.max_tokens
        ceiling = limit if edit.max_answer_tokens is None else edit.max_answer_tokens
        return min(default_max_tokens(prompt), limit - len(prompt.token_ids), ceiling)

    def _engine_request(self, plan: EditPlan, region_prompt: RegionPrompt) -> EngineRequest:
        edit, sampling = plan.edit, plan.edit.sampling
        prompt, region = region_prompt.prompt, region_prompt.region
        max_draft_tokens = self._limits.max_draft_tokens
        if edit.max_draft_tokens is not None:
            max_draft_tokens = min(edit.max_draft_tokens, max_draft_tokens)
        constraint = region_prompt.constraint
        proposer = None
        if constraint is None and max_draft_tokens:
            proposer = make_proposer(
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
            ),
            proposer=proposer,
            constraint=None if constraint is None else constraint.grammar(),
            max_draft_tokens=max_draft_tokens,
            priority=edit.priority,
            cache_salt=edit.cache_salt,
            deadline=plan.deadline,
        )


def _value(error: PromptTooLongError) -> float:
    return error.value


def _shorter(edit: EditRequest) -> str:
    """What a caller may do about a prompt that is too long."""
    if edit.sampling.max_tokens is not None:
        return "lower max_tokens"
    if edit.scope == "file":
        return 'leave scope at "auto", which rewrites only what changes'
    if not edit.has_fallback:
        return 'leave checks "on", which may do without the model, or send one change at a time'
    return "send one change at a time, with an unchanged line before and after it"
