"""Runs slices of edits with a service of its own, without HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from apply_service.config import Settings
from apply_service.fleet.batch.edit import Edit
from apply_service.fleet.batch.results import EditResult
from apply_service.http.problems import Problem, make_problem, problem_of
from apply_service.http.routes.edit_run import edit_result, run_body
from apply_service.http.schemas import ApplyBody, ApplyResult, Base64Content
from apply_service.models.found_model import try_find_model
from apply_service.service_of_settings import service_of

# Problems that another try may not have, such as a lost engine.
_PASSING = frozenset({429, 500, 503, 504})
_NUM_TRIES = 3
_PAUSE_S = 1.0


class BatchWorker:
    """One service, used by one thread; the model is loaded only where edits may need it."""

    def __init__(self, settings: Settings) -> None:
        """Start it. Raises ModelStoreError or PromptError; `close` ends it."""
        use_model = settings.use_model
        if use_model == "auto":
            use_model = settings.auto_use_model
        self._service = service_of(settings, try_find_model(settings))
        self._max_in_flight = settings.max_batch_in_flight
        self._runner = asyncio.Runner()
        self._runner.run(self._start(needs_model=use_model != "never"))

    def run(self, edits: Sequence[Edit]) -> list[EditResult]:
        """The results of edits, in their order; what goes wrong with one is its result."""
        return self._runner.run(self._run(edits))

    def close(self) -> None:
        """End the service and its processes."""
        self._runner.run(self._service.stop())
        self._runner.close()

    async def _start(self, *, needs_model: bool) -> None:
        if needs_model:
            self._service.start()
            await self._service.wait_for_model(is_patient=True)
        else:
            self._service.start_without_model()

    async def _run(self, edits: Sequence[Edit]) -> list[EditResult]:
        free = asyncio.Semaphore(self._max_in_flight)

        async def run_one(edit: Edit) -> EditResult:
            async with free:
                return await self._answer(edit)

        return await asyncio.gather(*(run_one(edit) for edit in edits))

    async def _answer(self, edit: Edit) -> EditResult:
        if edit.problem is not None:
            return _failed(edit, _unusable(edit.problem))
        num_left = _NUM_TRIES
        while True:
            answer = await self._try(edit)
            num_left -= 1
            if isinstance(answer, ApplyResult):
                return _done(edit, answer)
            if answer.status not in _PASSING or not num_left:
                return _failed(edit, answer)
            await asyncio.sleep(_PAUSE_S)

    async def _try(self, edit: Edit) -> ApplyResult | Problem:
        try:
            body = _body_of(edit)
            outcome = await run_body(body, self._service, None)
            return await edit_result(body, self._service, outcome)
        except Exception as error:  # an edit's fault must not end the batch
            return problem_of(error)


def _body_of(edit: Edit) -> ApplyBody:
    original: str | Base64Content
    try:
        original = edit.original.decode("utf-8")
    except UnicodeDecodeError:
        original = Base64Content(edit.original)
    # In this priority no edit is put off for a smaller one, which would cost a process each time.
    return ApplyBody(
        original=original,
        update=edit.update,
        path=edit.path,
        instruction=edit.instruction,
        priority="batch",
    )


def _done(edit: Edit, answer: ApplyResult) -> EditResult:
    return EditResult(
        key=edit.key,
        id=edit.id,
        path=edit.path,
        status=answer.status,
        merged=msgspec.to_builtins(answer.merged),
        source=answer.source,
        findings=msgspec.to_builtins(answer.findings),
        choices=msgspec.to_builtins(answer.choices),
    )


def _failed(edit: Edit, problem: Problem) -> EditResult:
    members: dict[str, Any] = msgspec.to_builtins(problem)
    members.pop("request_id", None)
    return EditResult(
        key=edit.key,
        id=edit.id,
        path=edit.path,
        status="rejected" if problem.code == "rejected" else "failed",
        problem=members,
    )


def _unusable(reason: str) -> Problem:
    return make_problem(
        400,
        code="edit-unusable",
        title="The edit cannot be read",
        detail=reason,
        remedy="correct the source and run the batch again; what is done is kept",
    )
