"""Counts why passes yield fewer tokens than the most possible: k accepted ones and one more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lookup.proposer import Draft


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftLosses:
    """Tokens that decode passes could have yielded and did not, by cause.

    rejected: drafted, but refused or behind a refused one; by the reference that the refused
    token was copied from.
    unproposed: the proposer had less to offer than it was asked for.
    unscheduled: offered, but the draft budget or the KV cache left no rows for them.
    without_room: not asked for, as the step's rows or the answer's limit had no room.
    at_end: whatever the last pass of an answer lacked.
    """

    rejected: Mapping[str, int] = field(default_factory=dict)
    unproposed: int = 0
    unscheduled: int = 0
    without_room: int = 0
    at_end: int = 0

    @property
    def by_cause(self) -> dict[str, int]:
        """The losses by cause, with rejected tokens split by reference."""
        return {
            **{f"rejected_{name}": count for name, count in self.rejected.items()},
            "unproposed": self.unproposed,
            "unscheduled": self.unscheduled,
            "without_room": self.without_room,
            "at_end": self.at_end,
        }

    @classmethod
    def total(cls, parts: Sequence[DraftLosses]) -> DraftLosses:
        """The losses of several requests, added up."""
        rejected: Counter[str] = Counter()
        for part in parts:
            rejected.update(part.rejected)
        return cls(
            rejected=dict(rejected),
            unproposed=sum(part.unproposed for part in parts),
            unscheduled=sum(part.unscheduled for part in parts),
            without_room=sum(part.without_room for part in parts),
            at_end=sum(part.at_end for part in parts),
        )


class LossCounter:
    """Adds up the losses of one request that speculates with drafts of at most k tokens."""

    def __init__(self, max_draft_tokens: int) -> None:
        self._max_draft_tokens = max_draft_tokens
        self._num_asked = 0
        self._num_proposed = 0
        self._rejected: Counter[str] = Counter()
        self._unproposed = 0
        self._unscheduled = 0
        self._without_room = 0
        self._at_end = 0

    @property
    def losses(self) -> DraftLosses:
        """The sums up to now."""
        return DraftLosses(
            rejected=dict(self._rejected),
            unproposed=self._unproposed,
            unscheduled=self._unscheduled,
            without_room=self._without_room,
            at_end=self._at_end,
        )

    def note_proposal(self, *, num_asked: int, num_proposed: int) -> None:
        """Note the draft that the proposer offered for the next pass, and the length asked for."""
        self._num_asked, self._num_proposed = num_asked, num_proposed

    def count_pass(
        self,
        draft: Draft | None,
        *,
        num_accepted: int,
        num_written: int,
        is_last: bool,
        num_own: int | None = None,
    ) -> None:
        """Count a decode pass that verified `draft`, a part of the last offer.

        num_own: the accepted tokens that were not of a branch; by default all
        """
        if is_last:
            self._at_end += self._max_draft_tokens + 1 - num_written
            return
        num_drafted = draft.num_nodes if draft is not None else 0
        if draft is not None and num_accepted < num_drafted:
            num_own = num_accepted if num_own is None else num_own
            self._rejected[draft.source_of(num_own)] += num_drafted - num_accepted
        self._without_room += self._max_draft_tokens - self._num_asked
        self._unproposed += self._num_asked - self._num_proposed
        self._unscheduled += self._num_proposed - num_drafted
