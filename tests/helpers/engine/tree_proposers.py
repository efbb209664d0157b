"""Proposers of trees for tests: they know the answer or nothing, and are as unhelpful as can be."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Literal

from lookup.proposer import EMPTY_DRAFT, MAIN, Branch, Draft

TreeKind = Literal["lucky", "random", "wrong", "repeating", "too long"]
MAX_BRANCHES = 4
NUM_TOKENS = 259


class TreeProposer:
    """Drafts trees from a known answer, by its kind; `num_branched` counts answers of branches.

    lucky: its own tokens go wrong somewhere, a branch is right there, or one of that branch
    random: any tokens at any forks
    wrong: no first token of any way is right
    repeating: all branches are the same, and like the draft itself
    too long: has more nodes than it was asked for
    """

    def __init__(self, answer: Sequence[int], kind: TreeKind, *, seed: int) -> None:
        self._answer = list(answer)
        self._kind = kind
        self._random = random.Random(seed)
        self._num_committed = 0
        self._last = EMPTY_DRAFT
        self.num_branched = 0

    def build(self) -> Iterator[None] | None:
        """Nothing is indexed."""
        return None

    def propose(self, max_tokens: int) -> Draft:
        """A tree of at most so many nodes, unless it is to be too long."""
        rest = self._answer[self._num_committed :]
        if self._kind == "too long":
            return Draft(tuple(self._tokens(max_tokens)), "tree", 0, branches=(self._branch(0, 1),))
        if max_tokens < 2 or len(rest) < 2:
            return EMPTY_DRAFT
        make = {
            "lucky": self._lucky,
            "random": self._any,
            "wrong": self._wrong,
            "repeating": self._repeating,
        }[self._kind]
        self._last = make(rest, max_tokens).cut(max_tokens)
        return self._last

    def commit(self, token_ids: Sequence[int]) -> None:
        """Move on, and see whether a branch was taken."""
        self._num_committed += len(token_ids)
        own = self._last.token_ids
        trunk = next(
            (at for at, pair in enumerate(zip(own, token_ids, strict=False)) if pair[0] != pair[1]),
            len(own),
        )
        self.num_branched += any(
            branch.parent == MAIN
            and branch.fork == trunk
            and list(branch.token_ids[:1]) == list(token_ids[trunk : trunk + 1])
            for branch in self._last.branches
        )
        self._last = EMPTY_DRAFT

    def _tokens(self, count: int) -> list[int]:
        return [self._random.randrange(3, NUM_TOKENS) for _ in range(count)]

    def _branch(self, fork: int, length: int, parent: int = MAIN) -> Branch:
        return Branch(fork, tuple(self._tokens(length)), "tree", parent)

    def _other(self, token_id: int) -> int:
        return token_id + 1 if token_id < NUM_TOKENS - 1 else token_id - 1

    def _lucky(self, rest: list[int], max_tokens: int) -> Draft:
        fork = self._random.randrange(min(20, len(rest) - 1, max_tokens - 1))
        own = [*rest[:fork], self._other(rest[fork]), *self._tokens(3)]
        length = self._random.randrange(1, 12)
        branch = list(rest[fork : fork + length])
        branches = [self._branch(self._random.randrange(fork + 1), 2)]
        if len(branch) > 2 and self._random.random() < 0.5:
            # The branch goes wrong itself, and has a branch that is right.
            inner = self._random.randrange(1, len(branch))
            right, branch[inner] = branch[inner:], self._other(branch[inner])
            branches.append(Branch(fork, tuple(branch), "tree"))
            branches.append(Branch(fork + inner, tuple(right), "tree", parent=1))
        else:
            branches.append(Branch(fork, tuple(branch), "tree"))
        return Draft(tuple(own), "tree", 0, branches=tuple(branches))

    def _any(self, rest: list[int], _max_tokens: int) -> Draft:
        own = rest[: self._random.randrange(8)] + self._tokens(self._random.randrange(1, 9))
        branches: list[Branch] = []
        for index in range(self._random.randrange(MAX_BRANCHES + 1)):
            parent = self._random.randrange(MAIN, index)
            first, stop = 0, len(own)
            if parent != MAIN:
                first, stop = branches[parent].fork + 1, branches[parent].depth
            if first < stop:
                fork = self._random.randrange(first, stop)
                branches.append(self._branch(fork, self._random.randrange(1, 20), parent))
            else:
                branches.append(self._branch(0, 1))
        return Draft(tuple(own), "tree", 0, branches=tuple(branches))

    def _wrong(self, rest: list[int], _max_tokens: int) -> Draft:
        wrong = [token for token in range(3, 3 + MAX_BRANCHES + 2) if token != rest[0]]
        branches = tuple(Branch(0, (token, *rest[1:4]), "tree") for token in wrong[1:])
        return Draft((wrong[0], *rest[1:9]), "tree", 0, branches=branches[:MAX_BRANCHES])

    def _repeating(self, rest: list[int], _max_tokens: int) -> Draft:
        own = [*rest[:4], self._other(rest[min(4, len(rest) - 1)])]
        branch = Branch(1, tuple(own[1:4]) or (own[0],), "tree")
        return Draft(tuple(own), "tree", 0, branches=(branch,) * MAX_BRANCHES)
