"""What a placement changes: the lines it shares with the original, and those between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, repeat


@dataclass(frozen=True, slots=True)
class Change:
    """Old lines give way to new ones between `num_before` and `num_after` common lines.

    `lost` and `added` are filled lines, stripped; `num_kept` more of the middle stand on both
    sides. `has_head` and `has_tail` say whether a common line at that border has text, and
    `more_blanks` counts the blank lines that come in addition where no line with text changes.
    """

    num_before: int
    num_after: int
    lost: tuple[str, ...]
    added: tuple[str, ...]
    num_kept: int
    has_head: bool
    has_tail: bool
    more_blanks: int

    @property
    def is_idle(self) -> bool:
        """Whether no line with text changes."""
        return not self.lost and not self.added and not self.num_kept


def change_of(old: Sequence[str], new: Sequence[str]) -> Change:
    """How `old` becomes `new`; both are lines of one span."""
    limit = min(len(old), len(new))
    head = 0
    while head < limit and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < limit - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    middle_old = Counter(map(str.strip, old[head : len(old) - tail]))
    middle_new = Counter(map(str.strip, new[head : len(new) - tail]))
    more_blanks = middle_new.pop("", 0) - middle_old.pop("", 0)
    lost, added = _without(middle_old, middle_new), _without(middle_new, middle_old)
    num_kept = middle_old.total() - len(lost)
    is_filled = bool(lost or added or num_kept)
    has_head = any(map(str.strip, new[:head]))
    return Change(
        num_before=head,
        num_after=tail,
        lost=lost,
        added=added,
        num_kept=num_kept,
        has_head=has_head,
        has_tail=any(map(str.strip, new[len(new) - tail :])) or (has_head and not is_filled),
        more_blanks=0 if is_filled else more_blanks,
    )


def _without(counts: Counter[str], others: Counter[str]) -> tuple[str, ...]:
    """The elements of `counts - others`, which builds a counter that nobody needs here."""
    surplus = (repeat(text, count - others.get(text, 0)) for text, count in counts.items())
    return tuple(chain.from_iterable(surplus))
