"""Answers of an attempt: read region by region as they come in, then joined into one file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from apply_service.apply.attempt import Attempt
from apply_service.apply.confidence import Testimony
from apply_service.apply.constrained_reading import ConstrainedReading
from apply_service.apply.errors import WithdrawnError
from apply_service.apply.planning.edit_plan import EditPlan
from apply_service.apply.region_prompt import RegionPrompt
from apply_service.edit.place.placement import Placement
from apply_service.edit.text.text_file import split_lines
from apply_service.edit.verdict.verdict import AnswerEnding
from apply_service.prompts.profile import AnswerFormatError
from batching.events import Event, Failed, Finished, RowEvidence, Tokens


@dataclass(frozen=True, slots=True)
class Answer:
    """The model's text for one region, and its probabilities under a constraint."""

    region_prompt: RegionPrompt
    lines: tuple[str, ...]
    ending: AnswerEnding
    token_ids: tuple[int, ...]
    evidence: tuple[RowEvidence, ...] = ()

    def testimony(self, plan: EditPlan, *, first_line: int) -> Testimony | None:
        """The model's judgement of the answer; None without a constraint.

        `first_line` is the number of lines of the result before the answer.
        """
        constraint = self.region_prompt.constraint
        if constraint is None:
            return None
        reading = ConstrainedReading(
            plan,
            self.region_prompt.region,
            constraint,
            self.token_ids,
            first_line=first_line,
        )
        offered: list[Placement] = []
        if plan.merge is not None and len(constraint.numbers) > 1:
            offered = [one for number in constraint.numbers for one in plan.merge.path(number)]
        region = self.region_prompt.region
        seen = [one for one in offered if one.is_inside(region.start, region.end)]
        return Testimony.of_region(reading, constraint, self.evidence, seen=seen)


class AnswerReader:
    """Reads the events of one region's request."""

    def __init__(self, region_prompt: RegionPrompt) -> None:
        self._region_prompt = region_prompt
        self._decoder = region_prompt.prompt.stream_decoder()
        self._token_ids: list[int] = []
        self._shown: list[str] = []
        self.answer: Answer | None = None

    def push(self, event: Event) -> str:
        """Take an event; return text to show. Raises the error that ended the request early."""
        if isinstance(event, Tokens):
            self._token_ids.extend(event.token_ids)
            text = self._decoder.push(event.token_ids)
        elif isinstance(event, Finished):
            text = self._decoder.finish()
        elif isinstance(event, Failed):
            raise event.error
        else:
            raise WithdrawnError(f"the request {event.request_id} was cancelled")
        self._shown.append(text)
        if isinstance(event, Finished):
            self.answer = self._read(event)
        return text

    def _read(self, event: Finished) -> Answer:
        """The lines of the answer; one that did not end properly is kept as raw text."""
        ending: AnswerEnding = "complete" if event.reason == "stop" else "length"
        lines: list[str] | None = None
        if ending == "complete":
            try:
                lines = self._region_prompt.prompt.parse_answer(self._token_ids)
            except AnswerFormatError:
                ending = "malformed"
        if lines is None:
            lines = split_lines("".join(self._shown))[0]
        return Answer(
            self._region_prompt, tuple(lines), ending, tuple(self._token_ids), event.evidence
        )


def splice_answers(plan: EditPlan, attempt: Attempt, answers: Sequence[Answer]) -> Attempt:
    """Put the answers of all regions into the attempt, in order, as lines of the whole file."""
    lines: list[str] = []
    position = 0
    testimonies: list[Testimony] = []
    ending: AnswerEnding = "complete"
    for answer in answers:
        region = answer.region_prompt.region
        lines.extend(plan.original_lines[position : region.start])
        testimony = answer.testimony(plan, first_line=len(lines))
        if testimony is not None:
            testimonies.append(testimony)
        lines.extend(answer.lines)
        position = region.end
        ending = ending if answer.ending == "complete" else answer.ending
    lines.extend(plan.original_lines[position:])
    is_over_ceiling = _is_over_ceiling(plan, answers)
    has_all = len(testimonies) == len(answers)
    return replace(
        attempt,
        prompts=(),
        lines=tuple(lines),
        ending="length" if is_over_ceiling else ending,
        testimony=Testimony.total(testimonies) if has_all else None,
        is_over_ceiling=is_over_ceiling,
    )


def _is_over_ceiling(plan: EditPlan, answers: Sequence[Answer]) -> bool:
    """True if an attempt needs more tokens than the caller allows."""
    ceiling = plan.edit.max_answer_tokens
    if ceiling is None:
        return False
    sizes = [len(answer.token_ids) for answer in answers]
    is_cut = any(
        answer.ending == "length" and size >= ceiling
        for answer, size in zip(answers, sizes, strict=True)
    )
    return is_cut or sum(sizes) > ceiling
