"""Chooses the few lines that an agent in a hurry shows around a change."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from snippets.anchors import Anchors
from snippets.definitions import (
    CodeBlock,
    blocks_around,
    depth_of,
    has_definition,
    header_name,
    is_whole,
)
from snippets.hunks import EditHunk, is_variant

_FORM_WEIGHTS = {
    "lone": 22,
    "neighbour": 30,
    "one_sided": 18,
    "context": 8,
    "header": 26,
    "definition": 22,
}
_MAX_JOINED_GAP = 3
_MAX_LONE_LINES = 3
_MAX_DEFINITION_LINES = 40
_MAX_LINES_TO_HEADER = 4
# Each with its weight.
_ONE_SIDED_SIZES = ((1, 70), (2, 22), (3, 8))
_TWO_SIDED_SIZES = ((1, 70), (2, 30))
_SIZES_UNDER_HEADER = ((0, 40), (1, 40), (2, 20))
_SIZES_BEFORE_DEFINITION = ((1, 60), (2, 25), (3, 15))
_LONE_STATEMENT_SHARE = 0.3
_ATTRIBUTES_SHARE = 0.5
_CLOSING_SHARE = 0.5
_NESTED_SHARE = 0.35
_OUTER_HEADER_SHARE = 0.1
_HEADER_BELOW_SHARE = 0.5
_HEADER_ABOVE_SHARE = 0.25
_KEY = re.compile(r"\s*(?:[a-z]+\s+)*[\"']?(?P<key>[\w.$-]+)[\"']?\s*[:=]")


@dataclass(frozen=True, slots=True)
class HunkGroup:
    """Hunks so close together that they are written as one."""

    hunks: tuple[EditHunk, ...]

    @property
    def start(self) -> int:
        """The first line of the original in the group."""
        return self.hunks[0].old_start

    @property
    def end(self) -> int:
        """The line of the original behind the group."""
        return self.hunks[-1].old_end

    @property
    def is_insertion(self) -> bool:
        """True if the group only adds lines, in one place."""
        return len(self.hunks) == 1 and self.hunks[0].is_insertion


@dataclass(frozen=True, slots=True)
class View:
    """Lines `start:end` of the original, shown as the edit leaves them."""

    start: int
    end: int
    style: str


def changes_of(hunks: Sequence[EditHunk]) -> list[HunkGroup]:
    """The hunks in order; those with few lines between them are one change."""
    groups = [[hunks[0]]]
    for last, hunk in pairwise(hunks):
        if hunk.old_start - last.old_end <= _MAX_JOINED_GAP:
            groups[-1].append(hunk)
        else:
            groups.append([hunk])
    return [HunkGroup(tuple(group)) for group in groups]


class TerseViews:
    """Chooses the lines that are shown for each change of one edit, unique or not.

    Removed lines are told by the lines on both sides, by the definition around them, or by
    new lines that look like them.
    """

    def __init__(
        self, original: Sequence[str], expected: Sequence[str], language: str, rng: random.Random
    ) -> None:
        self._original = original
        self._expected = expected
        self._language = language
        self._rng = rng
        self._anchors = Anchors(original)
        self._forms: dict[str, Callable[[HunkGroup], list[View]]] = {
            "lone": self._lone,
            "neighbour": self._neighbour,
            "one_sided": self._one_sided,
            "context": self._context,
            "header": self._header,
            "definition": self._definition,
        }

    def of(self, change: HunkGroup) -> list[View]:
        """The view of a change, in one of the forms that can tell it."""
        weights = dict(_FORM_WEIGHTS)
        while weights:
            (form,) = self._rng.choices(list(weights), list(weights.values()))
            views = self._forms[form](change)
            if views:
                return views
            del weights[form]
        return self._context(change)

    def _lone(self, change: HunkGroup) -> list[View]:
        """The new lines alone: they look like the old ones, or are something whole."""
        if not (self._is_told(change, is_above=True) and self._is_told(change, is_above=False)):
            return []
        if change.is_insertion:
            new = change.hunks[0].new(self._expected)
            is_statement = not has_definition(new)
            if not is_whole(new) or (is_statement and self._rng.random() > _LONE_STATEMENT_SHARE):
                return []
        elif any(
            max(len(hunk.old(self._original)), len(hunk.new(self._expected))) > _MAX_LONE_LINES
            for hunk in change.hunks
        ):
            return []
        return [View(change.start, change.end, "lone")]

    def _neighbour(self, change: HunkGroup) -> list[View]:
        """A new definition, with a line or two of the definition below or above."""
        new = change.hunks[0].new(self._expected)
        if not change.is_insertion or not is_whole(new) or not has_definition(new):
            return []
        if self._rng.random() < _HEADER_BELOW_SHARE:
            return self._down_to_header(change)
        if self._rng.random() < _HEADER_ABOVE_SHARE:
            views = self._under_definition(change, depth_of(new))
            if views:
                return views
        start = self._anchors.reach_up(change.start, self._drawn(_SIZES_BEFORE_DEFINITION))
        return self._filled_view(start, change.end, change, "neighbour")

    def _down_to_header(self, change: HunkGroup) -> list[View]:
        below = range(change.end, len(self._original))
        filled = (at for at in below if self._original[at].strip())
        near = islice(filled, _MAX_LINES_TO_HEADER)
        header = next((at for at in near if header_name(self._original[at])), None)
        if header is None:
            end = self._anchors.reach_down(change.end, 1)
            return self._filled_view(change.start, end, change, "neighbour")
        block = next(blocks_around(self._original, header, header + 1, self._language), None)
        if block is None or block.header != header:
            return [View(change.start, header + 1, "neighbour")]
        view = View(change.start, block.body_start, "neighbour")
        return [view, *self._closing(block, _CLOSING_SHARE / 2)]

    def _under_definition(self, change: HunkGroup, depth: int) -> list[View]:
        """The header of the definition above, which is left out, and its closing line."""
        above = self._anchors.reach_up(change.start, 1)
        blocks = blocks_around(self._original, above, above + 1, self._language)
        block = next((one for one in blocks if self._depth(one) == depth), None)
        if block is None or block.end > change.start:
            return []
        start = block.body_end if block.has_closing() else change.start
        return [self._header_view(block), View(start, change.end, "neighbour")]

    def _one_sided(self, change: HunkGroup) -> list[View]:
        """Usually a line of context, where the new lines do not tell the border."""
        num_lines = self._drawn(_ONE_SIDED_SIZES)
        sides = []
        if self._is_told(change, is_above=False):
            sides.append((self._anchors.reach_up(change.start, num_lines), change.end))
        if self._is_told(change, is_above=True):
            sides.append((change.start, self._anchors.reach_down(change.end, num_lines)))
        if not sides:
            return []
        return self._filled_view(*self._rng.choice(sides), change, "one_sided")

    def _context(self, change: HunkGroup) -> list[View]:
        """A line or two on both sides."""
        start = self._anchors.reach_up(change.start, self._drawn(_TWO_SIDED_SIZES))
        end = self._anchors.reach_down(change.end, self._drawn(_TWO_SIDED_SIZES))
        return [View(start, end, "context")]

    def _header(self, change: HunkGroup) -> list[View]:
        """Headers of definitions around the change, and what changes in them."""
        blocks = self._blocks_with_inside(change)
        if not blocks:
            return []
        roll = self._rng.random()
        shown = blocks[:1]
        if roll < _NESTED_SHARE:
            shown = blocks[:2]
        elif roll > 1 - _OUTER_HEADER_SHARE:
            shown = blocks[1:2] or shown
        views = [self._inside(change, blocks[0])]
        for block in shown:
            views += [self._header_view(block), *self._closing(block, _CLOSING_SHARE)]
        return views

    def _inside(self, change: HunkGroup, block: CodeBlock) -> View:
        """The change with little context, all from the block where the change tells its border."""
        num_before, num_after = (self._drawn(_SIZES_UNDER_HEADER) for _ in range(2))
        if self._is_told(change, is_above=True):
            start = max(self._anchors.reach_up(change.start, num_before), block.body_start)
        else:
            start = self._anchors.reach_up(change.start, max(num_before, 1))
        if self._is_told(change, is_above=False):
            end = min(self._anchors.reach_down(change.end, num_after), block.body_end)
        else:
            end = self._anchors.reach_down(change.end, max(num_after, 1))
        return View(start, end, "header")

    def _definition(self, change: HunkGroup) -> list[View]:
        """The whole definition around the change; its header may change too."""
        for block in blocks_around(self._original, change.start, change.end, self._language):
            if self._is_beside(change, block):
                continue
            is_told = (block.header < change.start or self._is_told(change, is_above=True)) and (
                change.end < block.end or self._is_told(change, is_above=False)
            )
            is_long = block.end - block.header > _MAX_DEFINITION_LINES
            if not is_told or is_long:
                return []
            return [View(self._lead(block), block.end, "definition")]
        return []

    def _is_beside(self, change: HunkGroup, block: CodeBlock) -> bool:
        """True if the change adds lines at a definition's border, outside its body."""
        is_above = change.hunks[0].is_insertion and change.start == block.header
        is_below = change.hunks[-1].is_insertion and change.end == block.end
        return (is_above or is_below) and self._depth_of(change) <= self._depth(block)

    def _blocks_with_inside(self, change: HunkGroup) -> list[CodeBlock]:
        """The two innermost definitions whose body contains the change."""
        depth = self._depth_of(change)
        blocks = blocks_around(self._original, change.start, change.end, self._language)
        around = (
            block
            for block in blocks
            if block.body_start <= change.start
            and change.end <= block.body_end
            and depth > self._depth(block)
        )
        return list(islice(around, 2))

    def _header_view(self, block: CodeBlock) -> View:
        return View(self._lead(block), block.body_start, "header")

    def _lead(self, block: CodeBlock) -> int:
        """The header, or now and then the first attribute above it."""
        if self._rng.random() > _ATTRIBUTES_SHARE:
            return block.header
        start = block.header
        while start and self._original[start - 1].lstrip().startswith(("@", "#[")):
            start -= 1
        return start

    def _closing(self, block: CodeBlock, share: float) -> list[View]:
        """The closing line of a definition, if it has one, in a share of all cases."""
        if not block.has_closing() or self._rng.random() >= share:
            return []
        return [View(block.body_end, block.end, "header")]

    def _filled_view(self, start: int, end: int, change: HunkGroup, style: str) -> list[View]:
        """The view if it has context with text."""
        context = [*self._original[start : change.start], *self._original[change.end : end]]
        return [View(start, end, style)] if any(map(str.strip, context)) else []

    def _is_told(self, change: HunkGroup, *, is_above: bool) -> bool:
        """True if the new lines alone say where the change begins, or where it ends."""
        hunk = change.hunks[0 if is_above else -1]
        new = hunk.new(self._expected)
        if not any(map(str.strip, new)):
            return False
        if hunk.is_insertion:
            return True
        outermost = 0 if is_above else -1
        return _replaces(hunk.old(self._original)[outermost], new[outermost])

    def _depth_of(self, change: HunkGroup) -> int:
        new = [line for hunk in change.hunks for line in hunk.new(self._expected)]
        old = self._original[change.start : change.end]
        return depth_of(new if any(map(str.strip, new)) else old)

    def _depth(self, block: CodeBlock) -> int:
        return depth_of([self._original[block.header]])

    def _drawn(self, weights: Sequence[tuple[int, int]]) -> int:
        sizes = [size for size, _ in weights]
        return self._rng.choices(sizes, [weight for _, weight in weights])[0]


def _replaces(old: str, new: str) -> bool:
    """True if a reader sees at once that one line replaces the other."""
    if not old.strip() or not new.strip():
        return False
    old_key, new_key = _KEY.match(old), _KEY.match(new)
    if old_key is not None and new_key is not None and old_key[0] == new_key[0]:
        return True
    name = header_name(old)
    return (name is not None and name == header_name(new)) or is_variant(old.strip(), new.strip())
