"""The merges that the edits of a form may mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from apply_service.edit.forms.form import Form, LineForm, StringForm
from apply_service.edit.forms.json_patch import patch_readings
from apply_service.edit.forms.line_edits import line_readings
from apply_service.edit.forms.reading import (
    FormError,
    Reading,
    refused,
)
from apply_service.edit.forms.string_edits import capped, string_readings
from apply_service.edit.place.exact_merges import MAX_DOUBTFUL
from apply_service.edit.place.merge import MIN_PROBABILITY, MergePlan, plan_merge
from apply_service.edit.read.segment import LineRole, Segment, SegmentLine, Snippet
from apply_service.edit.read.snippet import read_snippet
from apply_service.edit.read.snippet_error import SnippetError
from apply_service.edit.text.alignment import changed_hunks

# Lines beside a change that belong to it.
NUM_CONTEXT = 2


def plan_form(
    original_lines: tuple[str, ...],
    form: Form,
    *,
    path: str | None = None,
    language: str | None = None,
    instruction: str | None = None,
) -> MergePlan:
    """The merges of a form, the likeliest first, or the finding that says why there is none.

    Raises BudgetSpentError if it takes too many comparisons.
    """
    search_alike = partial(_alike, path=path, language=language, instruction=instruction)
    try:
        readings = _readings(original_lines, form, search_alike)
    except FormError as error:
        return MergePlan(original_lines=original_lines, findings=(error.finding,))
    first = readings[0]
    is_only = len(readings) == 1
    certainty = first.probability if is_only else min(first.probability, MAX_DOUBTFUL)
    return MergePlan(
        original_lines=original_lines,
        merges=tuple(reading.lines for reading in readings),
        weights=tuple(math.log(max(reading.probability, MIN_PROBABILITY)) for reading in readings),
        certainty=certainty,
        snippet=_snippet(original_lines, first.lines),
    )


def _readings(
    original: tuple[str, ...], form: Form, search_alike: partial[list[Reading]]
) -> list[Reading]:
    """The texts that differ from the original, at most 8. Raises FormError."""
    if isinstance(form, StringForm):
        found = string_readings(original, form.edits, search_alike)
    elif isinstance(form, LineForm):
        found = line_readings(original, form.edits)
    else:
        found = patch_readings(original, form.edits)
    changed = [reading for reading in found if reading.lines != original]
    if not changed:
        raise refused(
            "nothing_changed",
            "the file stays as it is after all edits",
            "read the file again: it may have the change already",
        )
    return changed


def _alike(
    lines: tuple[str, ...],
    old: Sequence[str],
    new: Sequence[str],
    *,
    path: str | None,
    language: str | None,
    instruction: str | None,
) -> list[Reading]:
    """What the edit may mean where lines like the old ones stand; never certain."""
    update = ["<<<<<<< SEARCH", *old, "=======", *new, ">>>>>>> REPLACE"]
    try:
        snippet = read_snippet(update, lines, path=path, language=language)
    except SnippetError:
        return []
    if snippet.format != "search_replace":
        return []
    plan = plan_merge(lines, update, snippet, path=path, language=language, instruction=instruction)
    weights = zip(plan.merges, plan.weights, strict=True)
    return capped([Reading(merge, math.exp(weight)) for merge, weight in weights])


def _snippet(original: Sequence[str], result: Sequence[str]) -> Snippet:
    """The change as old and new lines with a little context, which the checks of a result read."""
    segments = []
    hunks = changed_hunks(original, result)
    tops = [0, *(hunk.old_end for hunk in hunks)]
    ends = [*(hunk.old_start for hunk in hunks[1:]), len(original)]
    for hunk, above, below in zip(hunks, tops, ends, strict=False):
        head = original[max(hunk.old_start - NUM_CONTEXT, above) : hunk.old_start]
        tail = original[hunk.old_end : min(hunk.old_end + NUM_CONTEXT, below)]
        new = result[hunk.new_start : hunk.new_end]
        roles: list[tuple[LineRole, str]] = [
            *(("context", text) for text in head),
            *(("new", text) for text in new),
            *(("context", text) for text in tail),
        ]
        segments.append(
            Segment(
                lines=tuple(
                    SegmentLine(text, number, role=role)
                    for number, (role, text) in enumerate(roles, start=1)
                ),
                old=(*head, *original[hunk.old_start : hunk.old_end], *tail),
            )
        )
    return Snippet(format="search_replace", segments=tuple(segments))
