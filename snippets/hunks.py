"""The differences between two versions of a text, as whole lines."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

_MIN_SIMILARITY = 0.6


@dataclass(frozen=True, slots=True)
class EditHunk:
    """Lines `old_start:old_end` of the original became lines `new_start:new_end`."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int

    @property
    def is_insertion(self) -> bool:
        """True if no line of the original is removed."""
        return self.old_start == self.old_end

    @property
    def is_deletion(self) -> bool:
        """True if no new line is added."""
        return self.new_start == self.new_end

    @property
    def num_changed(self) -> int:
        """Number of lines removed plus number of lines added."""
        return self.old_end - self.old_start + self.new_end - self.new_start

    def old(self, original: Sequence[str]) -> Sequence[str]:
        """The removed lines."""
        return original[self.old_start : self.old_end]

    def new(self, expected: Sequence[str]) -> Sequence[str]:
        """The added lines."""
        return expected[self.new_start : self.new_end]

    def shifted(self, old_by: int, new_by: int) -> EditHunk:
        """The same hunk, counted from the start of a later window."""
        return EditHunk(
            self.old_start - old_by,
            self.old_end - old_by,
            self.new_start - new_by,
            self.new_end - new_by,
        )


def find_hunks(original: Sequence[str], expected: Sequence[str]) -> list[EditHunk]:
    """All hunks in order; between them the lines are equal."""
    num_head = 0
    for old_line, new_line in zip(original, expected, strict=False):
        if old_line != new_line:
            break
        num_head += 1
    num_tail = 0
    longest_tail = min(len(original), len(expected)) - num_head
    while num_tail < longest_tail and original[-1 - num_tail] == expected[-1 - num_tail]:
        num_tail += 1
    old = original[num_head : len(original) - num_tail]
    new = expected[num_head : len(expected) - num_tail]
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return [
        EditHunk(i1 + num_head, i2 + num_head, j1 + num_head, j2 + num_head)
        for tag, i1, i2, j1, j2 in matcher.get_opcodes()
        if tag != "equal"
    ]


def is_look_alike(old: Sequence[str], new: Sequence[str]) -> bool:
    """True if each new line resembles the line it replaces and so is an anchor by itself."""
    return len(old) == len(new) and all(map(is_variant, old, new))


def is_variant(old: str, new: str) -> bool:
    """True if two lines are so similar that one may be meant to replace the other."""
    return difflib.SequenceMatcher(None, old, new, autojunk=False).ratio() >= _MIN_SIMILARITY
