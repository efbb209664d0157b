"""Whether merges keep the syntax of a file that has no syntax errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from apply_service.edit.place.opinion.placement import MergePath, Placement, RemovedSpan
from apply_service.edit.place.opinion.splice import splice
from apply_service.edit.syntax.syntax import SyntaxTree, parse
from apply_service.edit.text.alignment import changed_hunks
from apply_service.edit.text.brackets import balance_of, num_closed_before, num_misplaced

# Characters of merges that are parsed for one plan: parsing takes 0.25 s a megabyte.
MAX_PARSED = 300_000

Soundness = Literal["sound", "broken", "unknown"]


class SyntaxCheck:
    """Parses merges of one original, each once, up to `MAX_PARSED` characters in all."""

    def __init__(
        self,
        original_lines: Sequence[str],
        tree: SyntaxTree | None,
        *,
        update_lines: Sequence[str] = (),
    ) -> None:
        """`tree` is that of the original; without one, or with errors in it, nothing is known.

        `update_lines` are all lines of the update, without its markers.
        """
        self._lacks_bracket = num_misplaced(update_lines) > 0
        self._original_lines = original_lines
        self._language = None if tree is None or tree.error_lines else tree.language
        self._num_left = MAX_PARSED
        self._known: dict[tuple[str, ...], Sequence[int] | None] = {}

    def of_placement(self, placement: Placement) -> Soundness:
        """The syntax with this placement and without those of other segments."""
        errors = self.error_lines([placement])
        if errors is None:
            return "unknown"
        return "broken" if errors else "sound"

    def keeps_blocks(self, placement: Placement) -> bool:
        """Whether all blocks begin and end where they did, or where the placement writes it.

        An update that lacks a bracket can keep the syntax by one of another block.
        """
        if self._lacks_bracket:
            return False
        old = self._original_lines[placement.start : placement.end]
        new = placement.lines
        for hunk in changed_hunks(old, new):
            lost, added = old[hunk.old_start : hunk.old_end], new[hunk.new_start : hunk.new_end]
            if balance_of(lost) != balance_of(added):
                return False
            if num_closed_before(lost) > num_closed_before(added):
                return False
        merged = splice(self._original_lines, MergePath(placements=(placement,)))
        return num_misplaced(merged) <= num_misplaced(self._original_lines)

    def error_lines(
        self, placements: Sequence[Placement], removed: Sequence[RemovedSpan] = ()
    ) -> Sequence[int] | None:
        """Lines of the merge with syntax errors; None if it is not known."""
        if self._language is None:
            return None
        path = MergePath(placements=tuple(placements), removed=tuple(removed))
        merged = tuple(splice(self._original_lines, path))
        if merged not in self._known:
            num_characters = sum(map(len, merged)) + len(merged)
            if num_characters > self._num_left:
                return None
            self._num_left -= num_characters
            tree = parse(merged, self._language)
            self._known[merged] = None if tree is None else tree.error_lines
        return self._known[merged]
