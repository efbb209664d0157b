"""What a writer is asked: the parts of a file that an edit touches, each as a chat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from apply_service.apply.attempt import Attempt, attempts_of
from apply_service.apply.planning.edit_plan import EditPlan
from apply_service.apply.region_prompt import update_for
from apply_service.apply.writer.grammar import grammar_of
from apply_service.edit.regional_update import regional_merges
from apply_service.edit.regions import Region, estimate_tokens
from apply_service.prompts.chat import ANSWER_PREFIX, LAYOUT, request_text
from apply_service.prompts.errors import AnswerFormatError

# A region may be so large, by estimate, before a coarser grid is not taken for it.
MAX_REGION_TOKENS = 1500
_SLACK_TOKENS = 128
_FENCE = "```"

Message = dict[str, str]
Lines = tuple[str, ...]


@dataclass(frozen=True)
class WritingPart:
    """One region of a file to write anew; `merges` are its texts in the likely merges."""

    region: Region
    original: Lines
    messages: list[Message]
    merges: tuple[Lines, ...]
    max_tokens: int

    @property
    def prediction(self) -> str:
        """The likeliest answer; empty if there is no merge."""
        return answer_text(self.merges[0]) if self.merges else ""

    @cached_property
    def grammar(self) -> str | None:
        """A grammar of all merges; None if there are less than two, or it would be too long."""
        return (
            grammar_of([answer_text(one) for one in self.merges]) if len(self.merges) > 1 else None
        )

    def read(self, answer: str) -> Lines | None:
        """The lines of an answer; None if it has another form."""
        text = answer.strip()
        if text.startswith(_FENCE) and text.endswith(_FENCE):
            text = text.removesuffix(_FENCE).partition("\n")[2].strip()
        if not text.startswith(ANSWER_PREFIX):
            return None
        try:
            return tuple(LAYOUT.parse(text.removeprefix(ANSWER_PREFIX)))
        except AnswerFormatError:
            return None

    def read_bound(self, answer: str) -> Lines | None:
        """The merge that an answer is; None if it is none of them."""
        text = answer.strip()
        return next((one for one in self.merges if answer_text(one).strip() == text), None)


@dataclass(frozen=True, slots=True)
class WritingTask:
    """The parts of one edit, in order, and the attempt that they make."""

    attempt: Attempt
    parts: tuple[WritingPart, ...]

    @property
    def can_bind(self) -> bool:
        """True if all parts have merges to choose from, and one has several."""
        has_all = all(one.merges for one in self.parts)
        is_short = all(one.grammar or len(one.merges) == 1 for one in self.parts)
        return has_all and is_short and any(one.grammar for one in self.parts)


def task_of(plan: EditPlan) -> WritingTask:
    """The narrowest attempt at an edit as a task."""
    attempt = next(attempts_of(plan, max_region_tokens=MAX_REGION_TOKENS))
    return WritingTask(
        attempt, tuple(_part_of(plan, attempt, region) for region in attempt.regions)
    )


def answer_text(lines: Sequence[str]) -> str:
    """The answer that has these lines."""
    return f"{ANSWER_PREFIX}{LAYOUT.join(lines)}{LAYOUT.closing}"


def _part_of(plan: EditPlan, attempt: Attempt, region: Region) -> WritingPart:
    original = plan.original_lines[region.start : region.end]
    update = update_for(plan, region, attempt.scope)
    merges = () if plan.merge is None else tuple(regional_merges(plan.merge, region))
    num_tokens = sum(map(estimate_tokens, (*original, *update.lines)))
    return WritingPart(
        region,
        original,
        [{"role": "user", "content": request_text(original, update.lines, plan.edit.instruction)}],
        merges,
        int(2 * num_tokens) + _SLACK_TOKENS,
    )
