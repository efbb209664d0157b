"""The interface of a drafter to the engine: a `Proposer` turns committed tokens into a `Draft`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

# In place of a branch: the draft's own tokens.
MAIN = -1


@dataclass(frozen=True, slots=True)
class Branch:
    """Another way on: behind `fork` drafted tokens of its parent come these, one at least.

    `parent` is the index of an earlier branch of the draft, or `MAIN`. `fork` counts from the
    beginning of the draft, whatever the parent, and there is a token of the parent behind it.
    """

    fork: int
    token_ids: tuple[int, ...]
    reference: str
    parent: int = MAIN

    @property
    def depth(self) -> int:
        """Tokens of the whole way to its end."""
        return self.fork + len(self.token_ids)


@dataclass(frozen=True, slots=True)
class Draft:
    """Token ids that probably (or, if `is_forced`, certainly) come next.

    `reference` names the source that they were copied from. `match_length` is the number of output
    tokens that agreed with that source before the draft; while a cursor is merely followed it is
    the length of the run followed so far. A draft that was stitched from several copies lists their
    first offsets with their references in `sources`, in order.

    A draft may be a tree: `token_ids` is then its likeliest way, `branches` are others, the most
    promising first. Its length is that of the likeliest way.
    """

    token_ids: tuple[int, ...]
    reference: str
    match_length: int
    is_forced: bool = False
    sources: tuple[tuple[int, str], ...] = field(default=(), compare=False)
    branches: tuple[Branch, ...] = ()

    def __len__(self) -> int:
        return len(self.token_ids)

    @property
    def num_nodes(self) -> int:
        """Tokens to verify: those of all ways, each once."""
        return len(self.token_ids) + sum(len(branch.token_ids) for branch in self.branches)

    def source_of(self, offset: int) -> str:
        """The reference of the token at `offset`."""
        passed = [name for first, name in self.sources if first <= offset]
        return passed[-1] if passed else self.reference

    def cut(self, max_tokens: int) -> Draft:
        """The same draft with at most `max_tokens` nodes; its own tokens come first."""
        token_ids = self.token_ids[:max_tokens]
        if not self.branches:
            return replace(self, token_ids=token_ids)
        room = max_tokens - len(token_ids)
        kept: list[int] = []
        for index, branch in enumerate(self.branches):
            if branch.parent == MAIN:
                has_parent = branch.fork < len(token_ids)
            else:
                has_parent = branch.parent in kept
            if has_parent and len(branch.token_ids) <= room:
                kept.append(index)
                room -= len(branch.token_ids)
        return replace(self, token_ids=token_ids).with_branches(kept)

    def with_branches(self, kept: Sequence[int]) -> Draft:
        """The same draft with these of its branches; without its parent a branch goes as well."""
        places = {MAIN: MAIN}
        branches: list[Branch] = []
        for index in kept:
            branch = self.branches[index]
            if branch.parent in places:
                places[index] = len(branches)
                branches.append(replace(branch, parent=places[branch.parent]))
        return replace(self, branches=tuple(branches))

    def with_short_branches(self, max_tokens: int) -> Draft:
        """The same draft, its branches cut to `max_tokens`; what left them behind that goes too."""
        branches = tuple(
            replace(branch, token_ids=branch.token_ids[:max_tokens]) for branch in self.branches
        )
        kept = [
            index
            for index, branch in enumerate(branches)
            if branch.parent == MAIN or branch.fork < branches[branch.parent].depth
        ]
        return replace(self, branches=branches).with_branches(kept)

    def stops(self, branch: int, num_accepted: int) -> dict[int, int]:
        """Where a way of `num_accepted` tokens, which ends in `branch`, leaves what it is made of.

        The depth by branch; that of `MAIN` is the number of the draft's own tokens that held.
        """
        stops = {branch: num_accepted}
        while branch != MAIN:
            stops[self.branches[branch].parent] = self.branches[branch].fork
            branch = self.branches[branch].parent
        return stops


EMPTY_DRAFT = Draft(token_ids=(), reference="", match_length=0)


class Proposer(Protocol):
    """Drafts for one request. Owned by the engine thread from submission on."""

    def build(self) -> Iterator[None] | None:
        """Do the indexing that can be done ahead; called once, before anything else.

        An iterator does it piece by piece, while the device computes. What has not been done by
        then is done when it is needed.
        """
        ...

    def propose(self, max_tokens: int) -> Draft:
        """Draft at most `max_tokens` nodes to follow the committed output. Changes no state.

        A shorter draft is the beginning of a longer one.
        """
        ...

    def commit(self, token_ids: Sequence[int]) -> None:
        """Append the model's tokens to the output."""
