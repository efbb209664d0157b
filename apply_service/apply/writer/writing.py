"""Lets a writer write an edit, and concludes what it wrote."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from apply_service.apply.attempt import Attempt
from apply_service.apply.conclusion import conclude, try_conclude_merge
from apply_service.apply.edit_request import EditRequest, UseModel
from apply_service.apply.events import EventSink, RegionDone, RegionStarted, RegionText
from apply_service.apply.outcome import Outcome
from apply_service.apply.planning.edit_plan import EditPlan
from apply_service.apply.planning.text_work import TextWork, WorkTerms
from apply_service.apply.run_state import is_good, rank
from apply_service.apply.writer.task import WritingTask, task_of
from apply_service.apply.writer.writer import Written
from apply_service.edit.regions import Region
from apply_service.observe.request_record import stage
from batching.events import RequestStats

# So long concluding a text may take, or the way without a writer, within the edit's deadline.
_RESERVE_S = 0.5


class Writes(Protocol):
    """Whoever can be asked to write the parts of an edit."""

    @property
    def accuracy(self) -> float:
        """The probability that a merge that it writes is meant."""

    async def write(
        self, edit: EditRequest, task: WritingTask, *, left_s: float | None = None
    ) -> Written | None:
        """The texts of a task, or None if they are not there in time; raises nothing."""


@dataclass(frozen=True, slots=True)
class Writing:
    """A writer for edits in which a model is to be asked.

    Where it writes nothing, `otherwise` is what `use_model` "auto" means without it.
    """

    writer: Writes
    text_work: TextWork
    otherwise: UseModel

    async def on(self, plan: EditPlan, events: EventSink) -> Outcome | None:
        """What the writer makes of a plan; None if it makes nothing.

        Events come with the whole text. Raises ApplyError or EngineError.
        """
        terms = WorkTerms.of(plan.edit, started_at=plan.started_at)
        with stage("prompt"):
            task = await self.text_work.run_here(terms, task_of, plan)
        with stage("writer"):
            left_s = None
            if plan.deadline is not None:
                left_s = plan.deadline - time.monotonic() - _RESERVE_S
            written = await self.writer.write(plan.edit, task, left_s=left_s)
        if written is None:
            return None
        for index, (part, lines) in enumerate(zip(task.parts, written.texts, strict=True)):
            events.put(RegionStarted(index, part.region.start, part.region.end))
            if lines:
                events.put(RegionText(index, "\n".join(lines)))
            events.put(RegionDone(index))
        with stage("verdict"):
            return await self.text_work.run(
                terms, conclude_written, plan, task.attempt, written, self.writer.accuracy
            )

    def without(self, plan: EditPlan) -> EditPlan:
        """The plan as it would be without a writer."""
        if plan.edit.use_model != "auto":
            return plan
        return replace(plan, edit=replace(plan.edit, use_model=self.otherwise))


def conclude_written(
    plan: EditPlan, attempt: Attempt, written: Written, accuracy: float
) -> Outcome:
    """The outcome of the texts of a writer, or of the merge if that is the milder one.

    A text that is one of the merges speaks for it as the word of a judge does.
    """
    lines = spliced(plan.original_lines, attempt.regions, written.texts)
    attempt = replace(attempt, source="writer", lines=lines)
    number = None if plan.merge is None else plan.merge.number_of(lines)
    if plan.merge is not None and number is not None:
        plan = replace(plan, merge=plan.merge.told(number, accuracy=accuracy))
    outcome = conclude(plan, attempt)
    if not is_good(outcome) and plan.edit.has_fallback:
        merged = try_conclude_merge(plan)
        if merged is not None and rank(merged) < rank(outcome):
            outcome = merged
    stats = replace(
        RequestStats.total(()),
        num_prompt_tokens=written.num_prompt_tokens,
        num_output_tokens=written.num_output_tokens,
    )
    return replace(outcome, stats=stats, total_s=time.monotonic() - plan.started_at)


def spliced(
    original: Sequence[str], regions: Sequence[Region], texts: Sequence[Sequence[str]]
) -> tuple[str, ...]:
    """The whole file with its regions written anew."""
    lines: list[str] = []
    position = 0
    for region, text in zip(regions, texts, strict=True):
        lines += [*original[position : region.start], *text]
        position = region.end
    return (*lines, *original[position:])
