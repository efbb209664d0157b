"""Lines that an update leaves out without a word: two texts, one with them and one without.

A function that is missing between two others, or a shorter body, may be meant or forgotten. Where
the data do not settle it, these two texts are what a caller is asked about first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from apply_service.edit.syntax.syntax import SyntaxTree, parse
from apply_service.edit.text.work_budget import BudgetSpentError, limited_work
from apply_service.edit.verdict.silent_losses import Run, Sent, TextLosses

if TYPE_CHECKING:
    from apply_service.edit.place.merge import MergePlan

# A merge is the other half of a question if it is so likely beside the second one.
MIN_SHARE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Omission:
    """Two texts that differ in lines of the original alone, which the update does not mention.

    `runs` are spans [start, end) of the original, counted from 0, in order, without blank lines at
    their ends. One of the texts is the likeliest merge.
    """

    runs: tuple[tuple[int, int], ...]
    kept: tuple[str, ...]
    removed: tuple[str, ...]


def find_omission(
    plan: MergePlan,
    update_lines: Sequence[str],
    *,
    tree: SyntaxTree | None,
    instruction: str | None,
) -> Omission | None:
    """What the likeliest merge keeps or removes without a word of the update, if anything.

    Its other half is one of the merges. Lines that the likeliest merge removes though it is not
    certain are also put back where they stood. `tree` is the syntax of the original. The same
    arguments give the same texts in any process.
    """
    if plan.snippet is None or not plan.merges:
        return None
    sent = Sent(plan.original_lines, update_lines, plan.snippet, tree=tree, instruction=instruction)
    try:
        with limited_work():
            made = None if plan.is_certain else _put_back(plan, sent)
            return _among_merges(plan, sent) if made is None else made
    except BudgetSpentError:
        return None


def _put_back(plan: MergePlan, sent: Sent) -> Omission | None:
    """The likeliest merge, and the same text with all lines that it loses without a word."""
    best = plan.merges[0]
    runs = TextLosses(sent, best).silent_runs()
    if not runs:
        return None
    lines = list(best)
    for run in reversed(runs):
        lines[run.at : run.until] = plan.original_lines[run.start : run.end]
    number = plan.number_of(lines, ignores_blank_lines=True)
    if number is None and _num_errors(lines, sent.tree) > _num_errors(best, sent.tree):
        return None
    return Omission(
        runs=_spans(runs, plan.original_lines),
        kept=tuple(lines) if number is None else plan.merges[number],
        removed=best,
    )


def _among_merges(plan: MergePlan, sent: Sent) -> Omission | None:
    """The likeliest merge, and a likely one with some lines of the original more or less."""
    best, *others = (TextLosses(sent, merge) for merge in plan.merges)
    for other, weight in zip(others, plan.weights[1:], strict=True):
        if weight < plan.weights[1] + math.log(MIN_SHARE):
            break
        for removed, kept in ((best, other), (other, best)):
            runs = removed.runs_more_in(kept)
            if runs and all(map(removed.is_silent, runs)):
                spans = _spans(runs, plan.original_lines)
                return Omission(runs=spans, kept=kept.lines, removed=removed.lines)
    return None


def _spans(runs: Sequence[Run], lines: Sequence[str]) -> tuple[tuple[int, int], ...]:
    filled = ([one for one in range(run.start, run.end) if lines[one].strip()] for run in runs)
    return tuple((places[0], places[-1] + 1) for places in filled)


def _num_errors(lines: Sequence[str], tree: SyntaxTree | None) -> int:
    parsed = None if tree is None else parse(lines, tree.language)
    return 0 if parsed is None else len(parsed.error_lines)
