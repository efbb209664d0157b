"""The axes of `benchmarks growth`: which edits stand for a value, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

import msgspec

from apply_service.apply.edit_request import EditRequest
from apply_service.apply.errors import ApplyError
from apply_service.edit.text.text_file import TextFile
from apply_service.evaluate.edit_session import EditSession, GroupTiming
from benchmarks.growth.sized_file import PATH, module_of, one_function_update, spread_functions

_FILE_LINES = 1000
# Whole files that the model writes itself: at k = 0 each token is a step.
_FREE_FILE_LINES = 33
# The edit that is not counted need not be slow.
_WARM_UP_DRAFT_TOKENS = 64
# Few edits at once are quick, so there are more of their groups.
_MIN_EDITS = 16


class GrowthEditError(ApplyError):
    """An edit that was to be timed came to nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """Its values by default, the least and the most that it may have, in steps.

    `draft_budgets` are those that it is measured with, None for that of the settings.
    """

    name: str
    values: tuple[int, ...]
    least: int
    most: int
    step: int = 1
    draft_budgets: tuple[Literal["auto", "fixed"] | None, ...] = (None,)


AXES = {
    axis.name: axis
    for axis in (
        Axis(name="file", values=(1000, 3000, 10_000, 30_000, 100_000), least=100, most=200_000),
        Axis(name="edit", values=(2, 8, 32, 64, 128), least=2, most=256, step=2),
        Axis(name="concurrency", values=(1, 2, 4, 8, 16, 32, 64), least=1, most=80),
        Axis(
            name="k",
            values=(0, 1, 2, 4, 8, 16, 32, 64, 128, 256),
            least=0,
            most=256,
            draft_budgets=("auto", "fixed"),
        ),
    )
}


class GrowthPoint(msgspec.Struct, frozen=True, kw_only=True):
    """Costs of edits at one value: medians of `num_edits` edits, in seconds.

    `plan_s` has the prompts in it, `model_s` is that of all edits of a group together, as are
    `edits_per_s`, the median of the groups' rates.
    """

    axis: str
    value: int
    draft_budget: str
    num_edits: int
    edit_s: float
    slowest_s: float
    plan_s: float
    draft_s: float
    model_s: float
    verdict_s: float
    prompt_tokens: float
    answer_tokens: float
    target_passes: float
    edits_per_s: float
    statuses: dict[str, int]


def measure_point(
    session: EditSession, axis: str, value: int, *, num_rounds: int = 3
) -> GrowthPoint:
    """Time edits at one value, after one that is not counted. Raises GrowthEditError."""
    together = value if axis == "concurrency" else 1
    if axis == "concurrency":
        num_rounds = max(num_rounds, -(-_MIN_EDITS // value)) if value < _MIN_EDITS else 1
    groups = []
    for turn in range(num_rounds + 1):
        edits = [
            replace(edit, cache_salt=f"{axis} {value} {turn} {place}".encode())
            for place, edit in enumerate(_edits(axis, value, count=together, turn=turn))
        ]
        if turn == 0:
            timing = session.run([_quick(edits[0])])
        else:
            timing = session.run(edits)
            groups.append(timing)
        _check_done(timing, axis, value)
    return _point_of(groups, axis=axis, value=value, draft_budget=session.settings.draft_budget)


def _edits(axis: str, value: int, *, count: int, turn: int) -> list[EditRequest]:
    """Edits of functions that stand apart; another turn has other functions."""
    num_lines = {"file": value, "k": _FREE_FILE_LINES}.get(axis, _FILE_LINES)
    original = TextFile.from_text(module_of(num_lines))
    functions = spread_functions(num_lines, count + turn)[-count:]
    edits = []
    for function in functions:
        num_new_lines = value if axis == "edit" else 2
        edit = EditRequest(
            original=original,
            update=one_function_update(function, num_new_lines=num_new_lines),
            path=PATH,
            has_fallback=False,
            use_model="always",
        )
        if axis == "k":
            edit = replace(edit, constraint="none", scope="file", max_draft_tokens=value)
        edits.append(edit)
    return edits


def _quick(edit: EditRequest) -> EditRequest:
    """The same edit with drafts that are not too short."""
    if edit.max_draft_tokens is None:
        return edit
    return replace(edit, max_draft_tokens=max(edit.max_draft_tokens, _WARM_UP_DRAFT_TOKENS))


def _check_done(timing: GroupTiming, axis: str, value: int) -> None:
    problems = {edit.problem for edit in timing.edits if edit.problem}
    if problems:
        raise GrowthEditError(
            f"an edit of the axis {axis} at {value} ended in {', '.join(sorted(problems))}; give"
            " smaller --values, or a model with a longer context"
        )


def _point_of(
    groups: Sequence[GroupTiming], *, axis: str, value: int, draft_budget: str
) -> GrowthPoint:
    edits = [edit for group in groups for edit in group.edits]
    statuses = [edit.status for edit in edits]
    return GrowthPoint(
        axis=axis,
        value=value,
        draft_budget=draft_budget,
        num_edits=len(edits),
        edit_s=median(edit.total_s for edit in edits),
        slowest_s=max(edit.total_s for edit in edits),
        plan_s=median(edit.plan_s + edit.prompt_s for edit in edits),
        draft_s=median(group.schedule_s for group in groups),
        model_s=median(group.execute_s for group in groups),
        verdict_s=median(edit.verdict_s for edit in edits),
        prompt_tokens=median(edit.num_prompt_tokens for edit in edits),
        answer_tokens=median(edit.num_output_tokens for edit in edits),
        target_passes=median(edit.target_passes for edit in edits),
        edits_per_s=median(len(group.edits) / group.wall_s for group in groups),
        statuses={status: statuses.count(status) for status in sorted(set(statuses))},
    )
