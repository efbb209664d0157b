"""The paths through the layers of some merges are these merges and no others."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from apply_service.edit.place.lattice.layers import layers_of
from apply_service.edit.place.path_search import PathSearch
from apply_service.edit.place.placement import MergePath, Placement
from apply_service.edit.place.splice import Membership, splice

ORIGINAL = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]
# Few words, so that lines repeat and an alignment has a choice.
texts = st.lists(st.sampled_from("abcde"), max_size=9)


def paths_of(
    original: Sequence[str], layers: Sequence[Sequence[Placement]]
) -> list[tuple[list[str], float]]:
    """Every text that the layers allow, with its weight."""
    paths = [MergePath(placements=placements) for placements in product(*layers)]
    return [(splice(original, path), path.weight) for path in paths]


@given(texts, st.lists(texts, min_size=1, max_size=5))
def test_the_paths_are_the_merges_with_their_weights(
    original: list[str], merges: list[list[str]]
) -> None:
    weights = [-float(number) for number in range(len(merges))]
    layers = layers_of(original, merges, weights)
    expected: dict[tuple[str, ...], float] = {}
    for merge, weight in zip(merges, weights, strict=True):
        expected.setdefault(tuple(merge), weight)
    found = {tuple(lines): weight for lines, weight in paths_of(original, layers)}
    assert found.keys() == expected.keys()
    if len(expected) > 1:
        assert found == expected
    membership = Membership(original, layers)
    assert all(membership.find(merge) is not None for merge in merges)
    best = PathSearch(layers).best_path()
    assert splice(original, MergePath(placements=best or ())) == merges[0]


def test_where_all_agree_a_layer_is_settled_and_what_differs_is_one_layer() -> None:
    first = ["a", "B", "c", "d", "E", "f", "g", "h", "i", "J"]
    other = ["a", "B", "c", "d", "F", "f", "g", "H", "i", "J"]
    settled, choice, last = layers_of(ORIGINAL, [first, other, first], [3.0, 1.0, 0.0])
    assert (settled[0].lines, settled[0].is_certain, len(settled)) == (("B",), True, 1)
    assert [(one.lines, one.weight) for one in choice] == [
        (("E", "f", "g", "h"), 3.0),
        (("F", "f", "g", "H"), 1.0),
    ]
    assert [(one.start, one.end, one.segment) for one in choice] == [(4, 8, 1)] * 2
    assert (last[0].lines, last[0].start, last[0].segment) == (("J",), 9, 2)


def test_an_original_that_stays_has_no_layers() -> None:
    assert layers_of(ORIGINAL, [ORIGINAL], [0.0]) == ()
