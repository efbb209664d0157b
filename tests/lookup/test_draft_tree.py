"""Trees as drafts: every way of a draft is one of the tree, and merging loses none."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from lookup.draft_tree import draft_of_tree, merge_drafts
from lookup.proposer import MAIN, Draft


def ways_of(draft: Draft) -> set[tuple[int, ...]]:
    """All beginnings of all ways."""
    ways: list[tuple[int, ...]] = [draft.token_ids]
    for branch in draft.branches:
        parent = draft.token_ids if branch.parent == MAIN else ways[branch.parent + 1]
        ways.append(parent[: branch.fork] + branch.token_ids)
    return {way[:stop] for way in ways for stop in range(1, len(way) + 1)}


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[int], list[int], list[float]]:
    """Nodes whose siblings have different tokens; worths fall along each way."""
    parents: list[int] = []
    token_ids: list[int] = []
    worths: list[float] = []
    for node in range(draw(st.integers(0, 14))):
        parent = draw(st.integers(-1, node - 1))
        taken = {token_ids[at] for at in range(node) if parents[at] == parent}
        token_ids.append(draw(st.sampled_from(sorted(set(range(21)) - taken))))
        above = 1.0 if parent == -1 else worths[parent]
        worths.append(above * draw(st.floats(0.05, 1.0)))
        parents.append(parent)
    return token_ids, parents, worths


def all_ways(token_ids: list[int], parents: list[int]) -> dict[tuple[int, ...], int]:
    ways: dict[int, tuple[int, ...]] = {-1: ()}
    for node, parent in enumerate(parents):
        ways[node] = (*ways[parent], token_ids[node])
    return {way: node for node, way in ways.items() if node >= 0}


@settings(deadline=None)
@given(tree=trees())
def test_with_room_for_all_branches_a_draft_is_its_tree(
    tree: tuple[list[int], list[int], list[float]],
) -> None:
    token_ids, parents, worths = tree
    draft = draft_of_tree(token_ids, parents, worths, reference="t", max_branches=99)
    assert ways_of(draft) == set(all_ways(token_ids, parents))
    assert draft.num_nodes == len(token_ids)


@settings(deadline=None)
@given(tree=trees(), max_branches=st.integers(0, 3))
def test_the_likeliest_child_goes_on_and_the_likeliest_branches_stay(
    tree: tuple[list[int], list[int], list[float]], max_branches: int
) -> None:
    token_ids, parents, worths = tree
    draft = draft_of_tree(token_ids, parents, worths, reference="t", max_branches=max_branches)
    nodes = all_ways(token_ids, parents)
    assert len(draft.branches) <= max_branches
    assert ways_of(draft) <= set(nodes)
    for depth in range(len(draft)):
        node = nodes[draft.token_ids[: depth + 1]]
        siblings = [worths[at] for at, parent in enumerate(parents) if parent == parents[node]]
        assert worths[node] == max(siblings)


@settings(deadline=None)
@given(first=trees(), second=trees())
def test_a_merged_draft_has_the_ways_of_both(
    first: tuple[list[int], list[int], list[float]],
    second: tuple[list[int], list[int], list[float]],
) -> None:
    drafts = [draft_of_tree(*tree, reference="t", max_branches=99) for tree in (first, second)]
    merged = merge_drafts(*drafts, max_branches=99)
    assert ways_of(merged) == ways_of(drafts[0]) | ways_of(drafts[1])
    assert merged.num_nodes == len(ways_of(merged)), "no node is there twice"
    assert merged.token_ids[: len(drafts[0])] == drafts[0].token_ids
    assert all(branch.token_ids for branch in merged.branches)
    few = merge_drafts(*drafts, max_branches=1)
    assert len(few.branches) <= 1
    assert ways_of(few) <= ways_of(merged)


@settings(deadline=None)
@given(tree=trees(), max_tokens=st.integers(0, 15))
def test_a_cut_draft_is_a_smaller_tree(
    tree: tuple[list[int], list[int], list[float]], max_tokens: int
) -> None:
    draft = draft_of_tree(*tree, reference="t", max_branches=99)
    cut = draft.cut(max_tokens)
    assert cut.num_nodes <= max_tokens
    assert ways_of(cut) <= ways_of(draft)
    assert cut.token_ids == draft.token_ids[:max_tokens]
    short = draft.with_short_branches(max_tokens + 1)
    assert ways_of(short) <= ways_of(draft)
    assert all(len(branch.token_ids) <= max_tokens + 1 for branch in short.branches)
