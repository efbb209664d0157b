"""The paths through the layers of some merges are these merges and no others."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from apply_service.edit.place.lattice.layers import layers_of
from apply_service.edit.place.placement import splice

ORIGINAL = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]
# Few words, so that lines repeat and an alignment has a choice.
texts = st.lists(st.sampled_from("abcde"), max_size=9)


@given(texts, st.lists(texts, min_size=1, max_size=5, unique_by=tuple))
def test_placement_n_of_the_open_layer_belongs_to_merge_n(
    original: list[str], merges: list[list[str]]
) -> None:
    weights = [-float(number) for number in range(len(merges))]
    layers = layers_of(original, merges, weights)
    assert sum(len(layer) > 1 for layer in layers) == (len(merges) > 1)
    for number, merge in enumerate(merges):
        path = [layer[number] if len(layer) > 1 else layer[0] for layer in layers]
        assert splice(original, path) == merge
        assert [one.layer for one in path] == [*range(len(layers))]
        assert sum(one.weight for one in path) == (weights[number] if len(merges) > 1 else 0.0)
        for one in path:
            old, new = original[one.start : one.end], list(one.lines)
            assert not (old and new) or (old[0] != new[0] and old[-1] != new[-1])


def test_where_all_agree_a_layer_is_settled_and_what_differs_is_one_layer() -> None:
    first = ["a", "B", "c", "d", "E", "f", "g", "h", "i", "J"]
    other = ["a", "B", "c", "d", "F", "f", "g", "H", "i", "J"]
    settled, choice, last = layers_of(ORIGINAL, [first, other], [3.0, 1.0])
    assert (settled[0].lines, len(settled)) == (("B",), 1)
    assert [(one.lines, one.weight) for one in choice] == [
        (("E",), 3.0),
        (("F", "f", "g", "H"), 1.0),
    ]
    assert [(one.start, one.end, one.layer) for one in choice] == [(4, 5, 1), (4, 8, 1)]
    assert (last[0].lines, last[0].start, last[0].layer) == (("J",), 9, 2)


def test_an_original_that_stays_has_no_layers() -> None:
    assert layers_of(ORIGINAL, [ORIGINAL], [0.0]) == ()
