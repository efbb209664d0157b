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
def test_placement_n_of_an_open_layer_belongs_to_merge_n(
    original: list[str], merges: list[list[str]]
) -> None:
    layers = layers_of(original, merges)
    assert any(len(layer) > 1 for layer in layers) == (len(merges) > 1)
    assert {len(layer) for layer in layers} <= {1, len(merges)}
    for number, merge in enumerate(merges):
        path = [layer[number] if len(layer) > 1 else layer[0] for layer in layers]
        assert splice(original, path) == merge
        assert [one.layer for one in path] == [*range(len(layers))]
        for one in path:
            old, new = original[one.start : one.end], list(one.lines)
            assert not (old and new) or (old[0] != new[0] and old[-1] != new[-1])


@given(texts, st.lists(texts, min_size=2, max_size=6, unique_by=tuple))
def test_each_layer_may_be_chosen_by_itself(original: list[str], merges: list[list[str]]) -> None:
    layers = [layer for layer in layers_of(original, merges) if len(layer) > 1]
    known = set(map(tuple, merges))
    settled = [layer[0] for layer in layers_of(original, merges) if len(layer) == 1]
    for number in range(len(merges)):
        for border in range(1, len(layers)):
            mixed = [layer[number if place < border else 0] for place, layer in enumerate(layers)]
            path = sorted([*settled, *mixed], key=lambda one: one.layer)
            assert tuple(splice(original, path)) in known


def test_where_all_agree_a_layer_is_settled_and_what_depends_on_each_other_is_one_layer() -> None:
    first = ["a", "B", "c", "d", "E", "f", "g", "h", "i", "J"]
    other = ["a", "B", "c", "d", "F", "f", "g", "H", "i", "J"]
    settled, choice, last = layers_of(ORIGINAL, [first, other])
    assert (settled[0].lines, len(settled)) == (("B",), 1)
    assert [one.lines for one in choice] == [("E",), ("F", "f", "g", "H")]
    assert [(one.start, one.end, one.layer) for one in choice] == [(4, 5, 1), (4, 8, 1)]
    assert (last[0].lines, last[0].start, last[0].layer) == (("J",), 9, 2)


def test_two_choices_that_do_not_depend_on_each_other_are_two_layers() -> None:
    merges = [["a", b, "c", "d", "e", "f", g, "h", "i", "j"] for b in "BX" for g in "GY"]
    one, other = layers_of(ORIGINAL, merges)
    assert [place.lines for place in one] == [("B",), ("B",), ("X",), ("X",)]
    assert [place.lines for place in other] == [("G",), ("Y",), ("G",), ("Y",)]
    (both,) = layers_of(ORIGINAL, [merges[0], merges[3]])
    assert len(both) == 2


def test_lines_that_move_are_one_choice() -> None:
    above = ["a", "new", *ORIGINAL[1:]]
    below = [*ORIGINAL[:8], "new", *ORIGINAL[8:]]
    (layer,) = layers_of(ORIGINAL, [above, below, ORIGINAL])
    assert len(layer) == 3


def test_an_original_that_stays_has_no_layers() -> None:
    assert layers_of(ORIGINAL, [ORIGINAL]) == ()
