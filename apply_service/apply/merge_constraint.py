"""The merges of a region as a constraint on the tokens of its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

from apply_service.edit.place.merge import MergePlan
from apply_service.edit.regional_update import regional_merges
from apply_service.edit.regions import Region
from apply_service.edit.text.alignment import bounded_hunks
from apply_service.prompts.merge_form import AnyMergeGrammar, MergeForm
from apply_service.prompts.prompt import Prompt
from batching.recipes import Merges
from lookup.constraint import GrammarError
from lookup.merge_automaton import num_equal
from lookup.merge_rules import MergeRules, MergeText


@dataclass(frozen=True, slots=True)
class MergeConstraint:
    """A grammar of merges; `texts` are their lines in the region, `numbers` those in the plan."""

    rules: MergeRules
    texts: tuple[tuple[str, ...], ...]
    numbers: tuple[int, ...]
    form: MergeForm

    def grammar(self) -> AnyMergeGrammar:
        """A fresh grammar at the start of an answer."""
        return self.form.grammar(self.rules)

    def recipe(self) -> Merges:
        """The same as plain data, for an engine."""
        return self.form.recipe(self.rules)


def try_constrain(plan: MergePlan, region: Region, prompt: Prompt) -> MergeConstraint | None:
    """The constraint of one region; None where there is no merge or the answer is free text."""
    form = prompt.merge_form
    if plan.best is None or form is None:
        return None
    offered = regional_merges(plan, region)
    if 0 not in offered.values():
        return None
    original = plan.original_lines[region.start : region.end]
    rules = MergeRules(
        texts=[
            _text_of(original, text, form, weight=plan.weights[number])
            for text, number in offered.items()
        ],
        end_token_ids=form.end,
        prior_scale=form.calibration.prior_scale,
    )
    constraint = MergeConstraint(rules, tuple(offered), tuple(offered.values()), form)
    try:
        constraint.grammar()
    except GrammarError:
        return None
    return constraint


def _text_of(
    original: Sequence[str], text: Sequence[str], form: MergeForm, *, weight: float
) -> MergeText:
    """The symbols of a text, with a border where it leaves the original and where it returns."""
    old, new = form.lines(original), form.lines(text)
    old_symbols, new_symbols = (tuple(chain(*lines, form.end)) for lines in (old, new))
    old_starts, new_starts = (list(accumulate(map(len, lines), initial=0)) for lines in (old, new))
    borders: set[int] = set()
    for hunk in bounded_hunks(original, text):
        start, end = new_starts[hunk.new_start], new_starts[hunk.new_end]
        going_on = old_symbols[old_starts[hunk.old_start] :]
        borders.add(start + num_equal(new_symbols[start:], going_on))
        again = going_on if hunk.new_start == hunk.new_end else new_symbols[start:]
        borders.add(end + num_equal(new_symbols[end:], again))
    symbols = tuple(chain(*new))
    return MergeText(symbols=symbols, weight=weight, borders=sorted(borders))
