"""The snippet of an edit: the headers around it, its pieces, and markers for what stays."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from training.generated.small_edits.code import table
from training.generated.small_edits.edit import Edit, Gap, New, Source, is_telling
from training.generated.small_edits.places import GRAMMARS, Block, indent_of
from training.generated.small_edits.releases import Part

# How often a wording is one that both parts use, and how often a snippet keeps to one wording.
USUAL_SHARE, SAME_WORDING_SHARE = 0.45, 0.5
# How often an annotation, a marker that is not needed, or a last closing line is left out.
LEFT_OUT_SHARE, UNMARKED_SHARE, UNCLOSED_SHARE = 0.5, 0.2, 0.12
# What follows a snippet: the header of the next function, a marker, or nothing.
NEXT_SHARE, MARKER_SHARE, MARKER_SHARE_OF_IMPORTS = 0.2, 0.55, 0.9
MAX_HEADER_ROWS = 4
_ANNOTATION = re.compile(r"\s*(?:@[\w.]+(?:\(.*\))?|#?\[.*\])$")


@dataclass(frozen=True, slots=True)
class Snippet:
    """The lines of a snippet, and those of them that are no markers."""

    lines: list[str]
    shown: list[str]


def write_snippet(source: Source, edit: Edit, part: Part, rng: random.Random) -> Snippet | None:
    """The snippet of an edit; None if its place is unclear."""
    shown = _shown_chain(source, edit, rng)
    return _Writer(source, edit, part, rng).write(shown) if shown is not None else None


def _shown_chain(source: Source, edit: Edit, rng: random.Random) -> list[Block] | None:
    """The blocks whose headers are shown, outermost first, so that the place is clear."""
    chain = edit.around.chain if edit.around else []
    blocks = [*chain, edit.opened] if edit.opened else chain
    starts = range(len(chain) + 1) if edit.opened else range(max(len(chain), 1))
    clear = [start for start in starts if _is_clear(source, blocks[start:])]
    if not clear:
        return None
    return chain[rng.choices((clear[-1], clear[0]), (35, 65))[0] :]


def _is_clear(source: Source, blocks: Sequence[Block]) -> bool:
    """Whether each header is the only one like it in what is around it."""
    start, end = 0, len(source.lines)
    for block in blocks:
        row = block.name_row
        is_root = source.language == "json" and not row
        is_imports = block.kind == "imports"
        if not is_root and not is_imports and not is_telling(source.lines, row, start, end):
            return False
        start, end = block.body, block.end
    return True


class _Markers:
    """The markers of one snippet: often the same wording throughout."""

    def __init__(self, language: str, part: Part, unit: str, rng: random.Random) -> None:
        self._part, self._unit, self._rng = part, unit, rng
        comment = GRAMMARS[language].comment
        form = "{comment} {text}" if rng.random() < 0.9 or comment == "--" else "{comment}{text}"
        if comment == "//" and rng.random() < 0.07 and language != "json":
            form = "/* {text} */"
        self._form = form.replace("{comment}", comment)
        is_same = rng.random() < SAME_WORDING_SHARE
        self._same = rng.choice(self._wordings("usual", "rest")[:2]) if is_same else None
        self._seen: set[str] = set()

    def line(self, role: str, indent: str) -> str:
        """A marker line."""
        text = self._same
        if text is None or role == "docstring":
            is_usual = self._rng.random() < USUAL_SHARE
            text = self._rng.choice(self._wordings("usual" if is_usual else self._part, role))
        line = indent + self._form.format(text=text.format(unit=self._unit))
        self._seen.add(line)
        return line

    def has(self, line: str) -> bool:
        """Whether a line of the snippet is one of its markers."""
        return line in self._seen

    def _wordings(self, part: str, role: str) -> list[str]:
        return cast("list[str]", table("markers")[part][role])


class _Writer:
    """Writes one snippet from the inside to the outside."""

    def __init__(self, source: Source, edit: Edit, part: Part, rng: random.Random) -> None:
        self._source, self._edit, self._rng = source, edit, rng
        self._lines = source.lines
        inner = edit.opened or edit.around
        outer = inner.chain[:-1] if inner else []
        is_method = any(block.kind == "class" and "class" in block.node.type for block in outer)
        unit = "method" if is_method else "function"
        self._markers = _Markers(source.language, part, unit, rng)
        self._is_open = False

    def write(self, shown: Sequence[Block]) -> Snippet:
        """The snippet with the headers of `shown`, outermost first."""
        snippet = self._pieces(is_alone=not shown)
        low, high = self._edit.low, self._edit.high
        for block in reversed(shown):
            snippet = self._in_block(block, snippet, (low, high), is_outermost=block is shown[0])
            low, high = block.start, block.stop
        outer = shown[0] if shown else self._edit.opened
        lines = self._in_file(snippet, (low, high), outer)
        return Snippet(lines, [line for line in lines if not self._markers.has(line)])

    def _pieces(self, *, is_alone: bool) -> list[str]:
        """The lines of the edit's own pieces."""
        shown: list[str] = []
        opened = self._edit.opened
        for piece in self._edit.pieces:
            if isinstance(piece, New):
                shown += self._edit.new
            elif isinstance(piece, Gap):
                hidden = self._lines[piece.start : piece.end]
                first = next((line for line in hidden if line.strip()), "")
                shown.append(self._markers.line(piece.role, indent_of(first)))
            elif opened and piece.start == opened.end < piece.end:
                self._is_open = is_alone and self._rng.random() < UNCLOSED_SHARE
                shown += [] if self._is_open else self._lines[piece.start : piece.end]
            else:
                shown += self._lines[piece.start : piece.end]
        return shown

    def _in_block(
        self, block: Block, inner: list[str], span: tuple[int, int], *, is_outermost: bool
    ) -> list[str]:
        """What is shown of a block around rows `span`, of which `inner` is shown."""
        is_innermost = block is self._edit.around and self._edit.opened is None
        role = self._role_in(block)
        indent = indent_of(self._lines[block.items[0].start])
        is_marked = is_innermost or self._rng.random() >= UNMARKED_SHARE
        before = "before" if role == "rest" else role
        above = self._gap(block.body, span[0], before, indent, is_above=True) if is_marked else []
        is_marked = is_innermost or self._rng.random() >= UNMARKED_SHARE
        after = "rest" if role == "before" else role
        below = self._gap(span[1], block.end, after, indent, is_above=False) if is_marked else []
        ends_in_marker = bool(below) and self._markers.has(below[-1])
        header = self._lines[self._first_shown(block) : block.body]
        if is_outermost and ends_in_marker and self._rng.random() < UNCLOSED_SHARE:
            self._is_open = block.stop > block.end
        closer = [] if self._is_open else self._lines[block.end : block.stop]
        return [*header, *above, *inner, *below, *closer]

    def _role_in(self, block: Block) -> str:
        if block is self._edit.around:
            return self._edit.role
        return {"class": "members", "struct": "members", "entries": "entries"}.get(
            block.kind, "rest"
        )

    def _first_shown(self, block: Block) -> int:
        """The first row of a header that the snippet shows; annotations may be left out."""
        row = block.start
        while row < block.name_row and _ANNOTATION.match(self._lines[row]):
            row += 1
        return block.start if self._rng.random() < LEFT_OUT_SHARE else row

    def _has_code(self, start: int, end: int) -> bool:
        return any(line.strip() for line in self._lines[start:end])

    def _gap(self, start: int, end: int, role: str, indent: str, *, is_above: bool) -> list[str]:
        """What stands for rows above or below what is shown: blank lines next to it may stay."""
        rows = self._lines[start:end]
        if not self._has_code(start, end):
            return rows
        near = rows[::-1] if is_above else rows
        num_blank = next(number for number, line in enumerate(near) if line.strip())
        blank = near[:num_blank] if self._rng.random() < 0.6 else []
        marker = self._markers.line(role, indent)
        return [marker, *blank] if is_above else [*blank, marker]

    def _in_file(self, snippet: list[str], span: tuple[int, int], outer: Block | None) -> list[str]:
        """The snippet with what stands for the rest of the file, or the next header, or nothing."""
        low, high = span
        parent = outer.parent if outer else None
        indent = indent_of(self._lines[outer.start]) if outer and parent else ""
        if self._has_code(0, low) and self._rng.random() < (0.35 if outer else 0.5):
            snippet = [*self._gap(0, low, "top", indent, is_above=True), *snippet]
        chance = self._rng.random()
        if self._is_open:
            return snippet
        following = self._next_function(outer, high)
        if following and chance < NEXT_SHARE:
            marker = self._markers.line("rest", indent_of(self._lines[following.items[0].start]))
            closer = self._lines[following.end : following.stop]
            return [*snippet, *self._lines[high : following.body], marker, *closer]
        end = parent.end if parent else len(self._lines)
        if chance > (MARKER_SHARE if outer else MARKER_SHARE_OF_IMPORTS):
            return snippet
        if not self._has_code(high, end):
            return snippet
        role = self._role_in(parent) if parent else "file" if outer else "imports"
        return [*snippet, *self._gap(high, end, role, indent, is_above=False)]

    def _next_function(self, outer: Block | None, row: int) -> Block | None:
        """The function right below one that ends at `row`, if its header is short."""
        if outer is None or outer.kind != "function":
            return None
        near = (
            block
            for block in self._source.blocks
            if block.kind == "function" and block.parent is outer.parent and block.start >= row
        )
        found = next(near, None)
        if found is None or self._has_code(row, found.start):
            return None
        return found if found.body - found.start <= MAX_HEADER_ROWS else None
