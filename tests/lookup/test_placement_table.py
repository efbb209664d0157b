"""The weight of the best way on is known before anything is written."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given, settings
from oracles.edits.brute_grammar import weighed_merges
from oracles.edits.small_rules import small_rules

from lookup.constraint import NoPathError
from lookup.merge_rules import GrammarPlacement, GrammarSegment, MergeRules
from lookup.placement_table import PlacementTable


@given(rules=small_rules())
@settings(max_examples=300, deadline=None)
def test_the_weight_of_the_heaviest_path_is_known(rules: MergeRules) -> None:
    answers = weighed_merges(rules)
    if not answers:
        with pytest.raises(NoPathError):
            PlacementTable(rules)
        return
    table = PlacementTable(rules)
    assert table.best_from(table.all_segments, 0) == max(answers.values())


def test_a_placement_that_leaves_no_room_is_no_entrance() -> None:
    first = GrammarSegment(
        [GrammarPlacement(start=0, end=1, lines=[]), GrammarPlacement(start=0, end=3, lines=[])]
    )
    second = GrammarSegment([GrammarPlacement(start=2, end=2, lines=[])])
    table = PlacementTable(MergeRules(original=[(0,)] * 4, segments=[first, second]))
    assert table.entrances(0b11).tracks == [0]
    assert table.entrances(0b10).tracks == [2]
    assert table.best_from(0b11, 1) == -inf
