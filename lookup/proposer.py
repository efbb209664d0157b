"""The interface of a drafter to the engine: a `Proposer` turns committed tokens into a `Draft`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Draft:
    """Token ids that probably (or, if `is_forced`, certainly) come next.

    `reference` names the source that they were copied from. `match_length` is the number of output
    tokens that agreed with that source before the draft; while a cursor is merely followed it is
    the length of the run followed so far. A draft that was stitched from several copies lists their
    first offsets with their references in `sources`, in order.
    """

    token_ids: tuple[int, ...]
    reference: str
    match_length: int
    is_forced: bool = False
    sources: tuple[tuple[int, str], ...] = field(default=(), compare=False)

    def __len__(self) -> int:
        return len(self.token_ids)

    def source_of(self, offset: int) -> str:
        """The reference of the token at `offset`."""
        passed = [name for first, name in self.sources if first <= offset]
        return passed[-1] if passed else self.reference

    def cut(self, max_tokens: int) -> Draft:
        """The same draft, at most `max_tokens` long."""
        return replace(self, token_ids=self.token_ids[:max_tokens])


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
        """Draft at most `max_tokens` tokens to follow the committed output. Changes no state.

        A shorter draft is the beginning of a longer one.
        """
        ...

    def commit(self, token_ids: Sequence[int]) -> None:
        """Append the model's tokens to the output."""
