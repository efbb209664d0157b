"""One pass over a syntax tree: symbols, import blocks, borders between statements, errors.

Only nodes that take several lines are looked into (and wrappers, which are looked into at the
top level even on one line), so a pass costs by the lines of a file, not by its tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from apply_service.edit.syntax.symbol import Symbol

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

    from apply_service.edit.syntax.grammars import Grammar, Traits
    from apply_service.edit.syntax.symbol_rules import Definition

# A megabyte of source has about 60,000 nodes that are looked at, one of JSON 300,000.
MAX_VISITED_NODES = 400_000
NO_ROW = -1
_OPENINGS = frozenset("([{")
_COMMENT_SIGNS = (("/*", "*/"), ("<!--", "-->"))
MAX_SHORT_KEY_LEVEL = 2
MAX_TEXT_BYTES = 2000


@dataclass(slots=True)
class Harvest:
    """The findings of one pass over a tree.

    `borders` maps a line number to the depth of the shallowest list of statements that may be
    cut there; `imports` are spans of lines that hold nothing else.
    """

    symbols: list[Symbol] = field(default_factory=list)
    imports: list[tuple[int, int]] = field(default_factory=list)
    borders: dict[int, int] = field(default_factory=dict)
    error_lines: list[int] = field(default_factory=list)


class _Frame(msgspec.Struct, gc=False):
    """Facts about a node while its children are visited.

    `lead_start` and `lead_end` are the first and last row of the comments and attributes that
    wait for a definition; `wrapper_start` is the first row of a wrapper around the next child;
    `level` counts the symbols around, `depth` the nodes.
    """

    symbol: int | None = None
    level: int = 0
    depth: int = 0
    hides: bool = False
    is_open: bool = False
    last_row: int = NO_ROW
    is_container: bool = False
    wrapper_start: int = NO_ROW
    lead_start: int = NO_ROW
    lead_end: int = NO_ROW


def harvest(tree: Tree, source: bytes, grammar: Grammar, *, lines: Sequence[str]) -> Harvest | None:
    """Walk `tree`, the parse of `lines` as UTF-8 `source`; None above `MAX_VISITED_NODES`."""
    return _Walk(tree, source, grammar, lines).run()


class _Walk:
    """Walks a tree without recursion: frames mirror the cursor's way down."""

    def __init__(self, tree: Tree, source: bytes, grammar: Grammar, lines: Sequence[str]) -> None:
        self._tree = tree
        self._source = source
        self._traits = grammar.traits
        self._lines = lines
        self._found = Harvest()
        self._has_errors = tree.root_node.has_error

    def run(self) -> Harvest | None:
        cursor = self._tree.walk()
        root = self._traits.get(self._tree.root_node.kind_id)
        if self._tree.root_node.is_error:
            self._note_error(len(self._lines))  # nothing closed what is open
        frame = _Frame(is_container=root is None or root.is_container)
        around: list[_Frame] = []
        num_visited = 0
        is_at_node = cursor.goto_first_child()
        while is_at_node:
            num_visited += 1
            if num_visited > MAX_VISITED_NODES:
                return None
            node = cursor.node
            assert node is not None
            inner = self._visit(node, frame)
            if inner is not None and cursor.goto_first_child():
                around.append(frame)
                frame = inner
                continue
            while not cursor.goto_next_sibling():
                if frame.lead_start != NO_ROW:
                    self._end_lead(frame)
                if not around or not cursor.goto_parent():
                    is_at_node = False
                    break
                frame = around.pop()
        return self._found

    def _visit(self, node: Node, frame: _Frame) -> _Frame | None:
        """Visit one node; return the frame for its children if they are to be visited."""
        traits = self._traits.get(node.kind_id)
        row, _ = node.start_point
        end_row, end_column = node.end_point
        if self._has_errors and (node.is_missing or node.is_error):
            self._note_error(row)
        elif traits is None and row == end_row and frame.wrapper_start == NO_ROW:
            frame.last_row = row  # a sign or keyword
            return None
        last = end_row
        if end_row > row and not (end_column and self._lines[end_row][:end_column].strip()):
            last -= 1  # some grammars count the white space before what follows
        if traits is not None and traits.is_leading:
            if last > row:
                self._note_swallowed(row, last)
            self._note_lead(frame, row, last)
            return None
        start = row
        if frame.lead_start != NO_ROW and frame.lead_end >= row - 1:
            start = frame.lead_start
        if traits is not None and frame.is_container:
            self._note_borders(frame, start, row, last)
        inner = self._inner_frame(node, frame, traits, start, row, last)
        if traits is not None or last > row:
            frame.lead_start = NO_ROW
            if frame.is_container:
                frame.wrapper_start = NO_ROW
        if last > frame.last_row:
            frame.last_row = last
        if inner is not None:
            return inner
        if self._has_errors and last == row and node.has_error and not node.is_error:
            self._note_error(row)
        return None

    def _inner_frame(
        self, node: Node, frame: _Frame, traits: Traits | None, start: int, row: int, last: int
    ) -> _Frame | None:
        """The frame for the children of a node on `row` and the lines after it up to `last`."""
        is_long = last > row
        if traits is None:
            # A group, `const (` or `{`: the first line belongs to all members, not to the first.
            if frame.wrapper_start != NO_ROW and node.type in _OPENINGS:
                frame.wrapper_start = NO_ROW
            return self._plain_frame(frame, is_container=True) if is_long else None
        definition = traits.reader(node, self._text) if traits.reader is not None else None
        if definition is not None and self._is_shown(definition, frame, is_long=is_long):
            return self._define(definition, frame, start, row, last, traits)
        if traits.is_leaf and not (self._has_errors and node.has_error):
            return None
        if not is_long and (frame.hides or not traits.is_wrapper):
            return None
        inner = self._plain_frame(frame, is_container=traits.is_container)
        if traits.is_wrapper:
            inner.wrapper_start = start if frame.wrapper_start == NO_ROW else frame.wrapper_start
        if traits.is_wrapper or traits.is_container:
            inner.lead_start, inner.lead_end = frame.lead_start, frame.lead_end
        if traits.is_scope:
            inner.hides = frame.hides or not frame.is_open
            inner.is_open = False
        if traits.is_open:
            inner.is_open = True
        return inner

    def _is_shown(self, definition: Definition, frame: _Frame, *, is_long: bool) -> bool:
        """True unless the node is a local variable or a short entry deep inside other entries."""
        if frame.hides:
            return definition.kind not in ("constant", "import", "key")
        return definition.kind != "key" or is_long or frame.level <= MAX_SHORT_KEY_LEVEL

    def _plain_frame(self, frame: _Frame, *, is_container: bool) -> _Frame:
        return _Frame(
            frame.symbol,
            frame.level,
            frame.depth + 1,
            frame.hides,
            frame.is_open,
            frame.last_row,
            is_container=is_container,
        )

    def _define(
        self, definition: Definition, frame: _Frame, start: int, row: int, last: int, traits: Traits
    ) -> _Frame | None:
        """Note a symbol or an import; return the frame for its children."""
        if frame.wrapper_start != NO_ROW:
            start, frame.wrapper_start = frame.wrapper_start, NO_ROW
            if start < self._sibling_end(frame):
                start = row
        if definition.kind == "import":
            self._note_import(row, last + 1)
            return None
        symbol = Symbol(
            name=definition.name,
            kind=definition.kind,
            start=start,
            header=definition.row,
            end=self._trimmed_end(row, last),
            parent=frame.symbol,
            is_complete=not definition.is_cut,
        )
        self._found.symbols.append(symbol)
        if last == row:
            return None
        inner = self._plain_frame(frame, is_container=traits.is_container)
        inner.symbol = len(self._found.symbols) - 1
        inner.level = frame.level + 1
        inner.is_open = definition.is_open
        if definition.kind == "function":
            inner.hides = True
        elif definition.kind == "class":
            inner.hides = False
        inner.lead_start, inner.lead_end = NO_ROW, NO_ROW
        return inner

    def _sibling_end(self, frame: _Frame) -> int:
        """The end of the symbol before, unless that symbol contains the frame."""
        last = len(self._found.symbols) - 1
        return 0 if last < 0 or last == frame.symbol else self._found.symbols[last].end

    def _trimmed_end(self, row: int, last: int) -> int:
        """The line after a node without the blank lines at its end."""
        last = min(last, len(self._lines) - 1)
        while last > row and not self._lines[last].strip():
            last -= 1
        return last + 1

    def _note_import(self, start: int, end: int) -> None:
        imports = self._found.imports
        if imports and imports[-1][1] >= start:
            imports[-1] = (imports[-1][0], max(end, imports[-1][1]))
        else:
            imports.append((start, end))

    def _note_error(self, row: int) -> None:
        """Note an error; one at the end of the text belongs to its last line."""
        self._found.error_lines.append(min(row, max(len(self._lines) - 1, 0)))

    def _note_swallowed(self, row: int, last: int) -> None:
        """Note a comment that is never closed and runs to the end of the next comment.

        No grammar reports an error there, and the text is valid; but nobody writes it on purpose.
        Where comments nest each one has its own end.
        """
        texts = [line.strip() for line in self._lines[row : last + 1]]
        for opening, closing in _COMMENT_SIGNS:
            if texts[0].startswith(opening) and sum(closing in text for text in texts) < 2:
                inner = (place for place, text in enumerate(texts) if text.startswith(opening))
                found = next((place for place in inner if place), None)
                if found is not None:
                    self._note_error(row + found)

    def _note_lead(self, frame: _Frame, row: int, last: int) -> None:
        """Note a comment or an attribute that belongs to the next definition."""
        if row <= frame.last_row and frame.lead_start == NO_ROW:
            frame.last_row = max(frame.last_row, last)
            return
        if frame.lead_start == NO_ROW or frame.lead_end < row - 1:
            self._end_lead(frame)
            frame.lead_start = row
            if frame.is_container:
                self._add_border(frame, row)
        frame.lead_end = last
        frame.last_row = max(frame.last_row, last)

    def _end_lead(self, frame: _Frame) -> None:
        if frame.lead_start != NO_ROW and frame.is_container:
            self._add_border(frame, frame.lead_end + 1)

    def _note_borders(self, frame: _Frame, start: int, row: int, last: int) -> None:
        """Note that the file may be cut before a statement (and its comments) and after it."""
        if start == row:
            if frame.lead_start != NO_ROW:
                self._end_lead(frame)
            if row > frame.last_row:
                self._add_border(frame, row)
            elif self._found.borders.get(row + 1) == frame.depth:
                del self._found.borders[row + 1]
        else:
            self._add_border(frame, start)
        self._add_border(frame, last + 1)

    def _add_border(self, frame: _Frame, row: int) -> None:
        borders = self._found.borders
        if borders.get(row, frame.depth) >= frame.depth:
            borders[row] = frame.depth

    def _text(self, node: Node) -> str:
        """The beginning of a node's text; names are short."""
        end = min(node.end_byte, node.start_byte + MAX_TEXT_BYTES)
        return self._source[node.start_byte : end].decode("utf-8", "replace")
