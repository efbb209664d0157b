"""The change that a placement makes: lines in common with the original, and those between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec


class Change(msgspec.Struct, frozen=True, gc=False):
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
    middle_old = _counts(old[head : len(old) - tail])
    middle_new = _counts(new[head : len(new) - tail])
    more_blanks = middle_new.pop("", 0) - middle_old.pop("", 0)
    lost, added = _without(middle_old, middle_new), _without(middle_new, middle_old)
    num_kept = sum(middle_old.values()) - len(lost)
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


def _counts(lines: Sequence[str]) -> dict[str, int]:
    """How often each line stands there, stripped; a `Counter` takes longer to build."""
    counts: dict[str, int] = {}
    for line in lines:
        text = line.strip()
        counts[text] = counts.get(text, 0) + 1
    return counts


def _without(counts: Mapping[str, int], others: Mapping[str, int]) -> tuple[str, ...]:
    """What `counts` has more of than `others`, each as often as it has it more."""
    surplus: list[str] = []
    for text, count in counts.items():
        more = count - others.get(text, 0)
        if more > 0:
            surplus += [text] * more
    return tuple(surplus)
