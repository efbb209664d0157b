"""Makes drafts of trees: of nodes with their probabilities, or of the drafts of several sources.

Merging token trees is from SpecInfer (Miao et al., ASPLOS 2024).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from heapq import heappop, heappush

from lookup.proposer import MAIN, Branch, Draft

# Each branch costs a request's overhead, so the weakest are left out.
MAX_BRANCHES = 4
_ROOT = -1


def draft_of_tree(
    token_ids: Sequence[int],
    parents: Sequence[int],
    worths: Sequence[float],
    *,
    reference: str,
    max_branches: int = MAX_BRANCHES,
) -> Draft:
    """The draft of a tree, of which the likeliest way comes first and weak branches are left out.

    parents: [num_nodes] the node before each one, an earlier one; -1 for none
    worths: [num_nodes] the probability of the way to each node, which never rises on a way
    """
    children: dict[int, list[int]] = {}
    for node, parent in enumerate(parents):
        children.setdefault(parent, []).append(node)
    for siblings in children.values():
        siblings.sort(key=lambda node: -worths[node])

    def way_from(node: int) -> list[int]:
        way = [node]
        while node in children:
            node = children[node][0]
            way.append(node)
        return way

    if not children:
        return Draft((), reference, 0)
    main = way_from(children[_ROOT][0])
    # Of each node, the branch that it is part of, and its depth.
    place = {_ROOT: (MAIN, -1)} | {node: (MAIN, depth) for depth, node in enumerate(main)}
    others = [node for siblings in children.values() for node in siblings[1:]]
    branches: list[Branch] = []
    for node in sorted(others, key=lambda node: -worths[node]):
        if len(branches) == max_branches:
            break
        if parents[node] not in place:
            continue  # its parent was left out, and so is it
        parent, depth = place[parents[node]]
        fork = depth + 1
        way = way_from(node)
        place |= {one: (len(branches), fork + at) for at, one in enumerate(way)}
        branches.append(Branch(fork, tuple(token_ids[one] for one in way), reference, parent))
    return Draft(tuple(token_ids[node] for node in main), reference, 0, branches=tuple(branches))


def grow_tree(
    children: Callable[[Sequence[int]], Sequence[tuple[int, float]]],
    *,
    max_nodes: int,
    max_depth: int,
    reference: str,
) -> Draft:
    """The draft of the likeliest nodes of a tree that is asked for what follows each way.

    children: of a way, from its first token: different tokens and the probability of each behind it
    """
    token_ids: list[int] = []
    parents: list[int] = []
    worths: list[float] = []
    ways: list[tuple[int, ...]] = []
    open_nodes: list[tuple[float, int, int, int]] = []  # worth, order, parent, token
    num_seen = 0

    def open_children(parent: int, way: tuple[int, ...], worth: float) -> None:
        nonlocal num_seen
        if len(way) < max_depth:
            for token_id, probability in children(way):
                heappush(open_nodes, (-worth * probability, num_seen, parent, token_id))
                num_seen += 1

    open_children(_ROOT, (), 1.0)
    while open_nodes and len(token_ids) < max_nodes:
        worth, _, parent, token_id = heappop(open_nodes)
        way = (*(() if parent == _ROOT else ways[parent]), token_id)
        token_ids.append(token_id)
        parents.append(parent)
        worths.append(-worth)
        ways.append(way)
        open_children(len(ways) - 1, way, -worth)
    return draft_of_tree(token_ids, parents, worths, reference=reference)


def merge_drafts(first: Draft, second: Draft, *, max_branches: int = MAX_BRANCHES) -> Draft:
    """Both trees in one; the likeliest way is that of `first`, and its branches come first."""
    merged = first if first.token_ids else second
    for index in (MAIN, *range(len(second.branches))):
        merged = _with_way(merged, _way_of(second, index), second.reference)
    return merged.with_branches(range(min(max_branches, len(merged.branches))))


def _way_of(draft: Draft, index: int) -> tuple[int, ...]:
    """All tokens from the beginning of a draft to the end of a branch, or of its own."""
    if index == MAIN:
        return draft.token_ids
    branch = draft.branches[index]
    return _way_of(draft, branch.parent)[: branch.fork] + branch.token_ids


def _with_way(draft: Draft, way: tuple[int, ...], reference: str) -> Draft:
    """The draft with one more way, of which it may hold a beginning."""
    at, depth = MAIN, 0
    while True:
        own = _way_of(draft, at)
        while depth < min(len(own), len(way)) and own[depth] == way[depth]:
            depth += 1
        if depth == len(way):
            return draft
        if depth == len(own):
            return _longer(draft, at, way[depth:])
        forking = next(
            (
                index
                for index, branch in enumerate(draft.branches)
                if branch.parent == at
                and branch.fork == depth
                and branch.token_ids[0] == way[depth]
            ),
            None,
        )
        if forking is None:
            break
        at = forking
    branch = Branch(depth, way[depth:], reference, at)
    return replace(draft, branches=(*draft.branches, branch))


def _longer(draft: Draft, at: int, token_ids: tuple[int, ...]) -> Draft:
    """The draft with more tokens at the end of a branch, or of its own."""
    if at == MAIN:
        return replace(draft, token_ids=draft.token_ids + token_ids)
    branches = list(draft.branches)
    branches[at] = replace(branches[at], token_ids=branches[at].token_ids + token_ids)
    return replace(draft, branches=tuple(branches))
