"""Which merges a model may choose from, and how they are told to the grammar."""

from __future__ import annotations

from itertools import chain

import pytest

from apply_service.apply.merge_constraint import MergeConstraint, try_constrain
from apply_service.edit.place.merge import MIN_WEIGHT, MergePlan
from apply_service.edit.regions import Region
from apply_service.models.store import resolve_model
from apply_service.prompts.profile import PromptRequest, load_profile

ORIGINAL = ("first = 1", "limit = 10", "second = 2", "", "limit = 10", "third = 3", "last = 4")
NEW = "limit = 20"
UPPER = (ORIGINAL[0], NEW, *ORIGINAL[2:])
LOWER = (*ORIGINAL[:4], NEW, *ORIGINAL[5:])
BOTH = (ORIGINAL[0], NEW, *ORIGINAL[2:4], NEW, *ORIGINAL[5:])
WHOLE = Region(0, len(ORIGINAL))


def plan(*weights: float) -> MergePlan:
    merges = (UPPER, LOWER, BOTH)[: len(weights)]
    return MergePlan(original_lines=ORIGINAL, merges=merges, weights=weights, certainty=0.5)


def constrained(merge: MergePlan, region: Region = WHOLE) -> MergeConstraint | None:
    profile = load_profile("embedded", resolve_model("embedded").path)
    lines = ORIGINAL[region.start : region.end]
    prompt = profile.build(PromptRequest(lines, ["# ...", NEW, "# ..."], segments=()))
    return try_constrain(merge, region, prompt)


def test_the_likely_merges_are_offered_the_likeliest_first() -> None:
    found = constrained(plan(-0.3, -1.5, MIN_WEIGHT - 0.1))
    assert found is not None
    assert (found.texts, found.numbers) == ((UPPER, LOWER), (0, 1))
    assert [text.weight for text in found.rules.texts] == [-0.3, -1.5]


def test_a_part_of_the_file_has_the_merges_that_keep_to_it() -> None:
    found = constrained(plan(-0.7, -1.0, -1.6), Region(0, 3))
    assert found is not None
    assert (found.texts, found.numbers) == ((UPPER[:3],), (0,))
    assert constrained(plan(-0.7, -1.0), Region(0, 1)) is not None, "nothing is open there"


@pytest.mark.parametrize("number", range(3))
def test_each_merge_is_an_answer(number: int) -> None:
    found = constrained(plan(-1.0, -1.1, -1.2))
    assert found is not None
    grammar = found.grammar()
    text = found.texts[number]
    while not grammar.is_complete:
        run = grammar.forced_run()
        if not run:
            ways = grammar.allowed_next()
            here = grammar.snapshot()
            for token in ways:
                grammar.advance(token)
                leads = reaches(grammar, number)
                grammar.restore(here)
                if leads:
                    run = [token]
                    break
        assert run
        grammar.advance_all(run)
    assert grammar.chosen() == number
    assert tuple(chain(*found.form.lines(text))) == tuple(found.rules.texts[number].symbols)


def reaches(grammar: object, number: int) -> bool:
    """Whether the text of a number is still possible: the draft of the rest may be forced to it."""
    chosen = grammar.chosen()
    if chosen == number:
        return True
    here = grammar.snapshot()
    position = getattr(here, "position", here)
    return number in position.texts


def test_borders_are_where_a_merge_leaves_the_original_and_where_it_returns() -> None:
    found = constrained(plan(-0.3, -1.5))
    assert found is not None
    old = tuple(chain(*found.form.lines(ORIGINAL), found.form.end))
    for text in found.rules.texts:
        new = (*text.symbols, *found.form.end)
        entered, left = text.borders
        assert new[:entered] == old[:entered]
        assert new[entered] != old[entered]
        rest = len(new) - left
        assert new[left:] == old[len(old) - rest :]


def test_without_a_merge_there_is_no_constraint() -> None:
    assert constrained(MergePlan(original_lines=ORIGINAL)) is None
