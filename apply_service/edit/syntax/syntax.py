"""Reads the syntax of a file with tree-sitter: symbols, imports, borders and errors, by line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from apply_service.edit.syntax.fragment import Frame, dedent, frames
from apply_service.edit.syntax.grammars import Grammar, try_load_grammar
from apply_service.edit.syntax.symbol import (
    Symbol,
    refined,
)
from apply_service.edit.syntax.tree_walk import Harvest, harvest
from apply_service.edit.text.alternatives import PREPROCESSED, without_directives
from apply_service.edit.text.work_budget import spend

MAX_RETRIED_BYTES = 200_000
# What is parsed in the time of a comparison.
BYTES_PER_COMPARISON = 4
# Characters of a fragment that are read, counted anew for each frame around it.
MAX_FRAGMENT_CHARS = 400_000
# Languages where a block ends by indentation, not by a sign.
_INDENTED = frozenset({"python", "yaml"})
_STATEMENT_WORDS = frozenset(
    {"if", "for", "while", "switch", "catch", "return", "else", "do", "try", "with", "foreach"}
)
# A line of a fragment that rather declares a local variable than a field. Python's locals are
# told from class attributes by depth: of those at eight columns 3 % were attributes.
_LOCAL_VARIABLE = {
    **dict.fromkeys(("javascript", "typescript", "tsx"), re.compile(r"\s+(?:const|let|var)\b")),
    "python": re.compile(r"(?: {8}|\t\t)"),
    "c": re.compile(r"\s"),
}
_KOTLIN_SPACED_BRACE = re.compile(rb"(?<=[^\s{;]) \}")


@dataclass(frozen=True, slots=True)
class SyntaxTree:
    """The parts of a file; all numbers are lines from 0, spans are half open.

    `symbols` are sorted by start, outer before inner. `error_lines` holds one entry a syntax
    error, sorted. `border_depths` gives, for each line before which the file may be cut, the depth
    of that cut (0: between top-level statements). Touching imports are one span.
    """

    language: str
    symbols: tuple[Symbol, ...]
    error_lines: tuple[int, ...]
    border_depths: Mapping[int, int]
    imports: tuple[tuple[int, int], ...]


def parse(lines: Sequence[str], language: str | None) -> SyntaxTree | None:
    """Parse a file; None without a grammar for `language` or beyond the limits of the parser."""
    grammar = try_load_grammar(language) if language is not None else None
    if grammar is None or language is None:
        return None
    source = _source_of(lines)
    spend(len(source) // BYTES_PER_COMPARISON)
    tree = grammar.parse(source)
    found = None if tree is None else harvest(tree, source, grammar, lines=lines)
    if found is None:
        return None
    if found.error_lines and len(source) <= MAX_RETRIED_BYTES:
        found = _fewer_errors(found, lines, source, grammar)
    return SyntaxTree(
        language=language,
        symbols=tuple(refined(found.symbols, lines, language)),
        error_lines=tuple(sorted(found.error_lines)),
        border_depths=found.borders,
        imports=tuple(found.imports),
    )


def _fewer_errors(found: Harvest, lines: Sequence[str], source: bytes, grammar: Grammar) -> Harvest:
    """Parse once more where a grammar is known not to understand its whole language.

    Kotlin's wants a line break or `;` before a closing brace: the sign takes the place of a space.
    Those of preprocessed languages know conditions between some parts of a statement only: the
    directives are left out, and the second tree is taken if it has fewer errors. All lines stay
    where they are.
    """
    max_errors = len(found.error_lines)
    if grammar.name == "kotlin":
        repaired = _KOTLIN_SPACED_BRACE.sub(b";}", source)
    elif grammar.name in PREPROCESSED:
        repaired = _source_of(without_directives(lines))
        max_errors -= 1
    else:
        return found
    tree = None if repaired == source else grammar.parse(repaired)
    retried = None if tree is None else harvest(tree, repaired, grammar, lines=lines)
    if retried is None or len(retried.error_lines) > max_errors:
        return found
    return retried


def _source_of(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")


def parse_fragment(
    lines: Sequence[str], language: str | None, *, next_indent: int | None = None
) -> tuple[Symbol, ...]:
    """Parse a piece of a file that `parse` alone would not understand, for its symbols.

    Methods may lack their class and bodies their end; a definition that the fragment leaves open
    is not complete. Where blocks end by indentation `next_indent` matters: the columns of
    white space before the marker that follows the fragment. Indented variables are left out
    where they are more likely local variables than fields.
    """
    if language is None or try_load_grammar(language) is None:
        return ()
    pieces = dedent(lines)
    best: tuple[int, tuple[Symbol, ...]] | None = None
    num_chars, num_left = sum(map(len, pieces)), MAX_FRAGMENT_CHARS
    for frame in frames(pieces, language):
        if num_left <= 0:
            break
        num_left -= num_chars
        tree = parse([*frame.before, *pieces, *frame.after], language)
        if tree is None:
            continue
        symbols = _unframed(tree.symbols, frame, len(pieces))
        # In a class `if (x) {` reads as a method: the frame is wrong.
        num_errors = len(tree.error_lines) + sum(s.name in _STATEMENT_WORDS for s in symbols)
        if best is None or num_errors < best[0]:
            best = (num_errors, symbols)
        if best[0] == 0:
            break
    if best is None:
        return ()
    symbols = _without_bodies(_without_locals(best[1], lines, language), lines)
    if next_indent is None or language not in _INDENTED:
        return symbols
    return _cut_by_indent(symbols, lines, next_indent)


def _without_locals(
    symbols: Sequence[Symbol], lines: Sequence[str], language: str
) -> tuple[Symbol, ...]:
    """Leave out local variables; their children go to the symbol around them."""
    kept: list[Symbol] = []
    new_places: dict[int, int | None] = {}
    for place, symbol in enumerate(symbols):
        parent = None if symbol.parent is None else new_places[symbol.parent]
        if symbol.name in _STATEMENT_WORDS or _is_local(symbol, lines, language):
            new_places[place] = parent
            continue
        new_places[place] = len(kept)
        kept.append(replace(symbol, parent=parent))
    return tuple(kept)


def _without_bodies(symbols: Sequence[Symbol], lines: Sequence[str]) -> tuple[Symbol, ...]:
    """Cut a definition that ends with an equals sign: the fragment does not show its body."""
    return tuple(
        replace(symbol, is_complete=False)
        if lines[symbol.end - 1].rstrip().endswith("=")
        else symbol
        for symbol in symbols
    )


def _is_local(symbol: Symbol, lines: Sequence[str], language: str) -> bool:
    if symbol.kind != "constant" or symbol.parent is not None:
        return False
    pattern = _LOCAL_VARIABLE.get(language)
    return pattern is not None and pattern.match(lines[symbol.header]) is not None


def _unframed(symbols: Sequence[Symbol], frame: Frame, num_lines: int) -> tuple[Symbol, ...]:
    """Symbols in the fragment's own lines, without those of the frame."""
    num_before = len(frame.before)
    kept: list[Symbol] = []
    new_places: dict[int, int] = {}
    for place, symbol in enumerate(symbols):
        header, end = symbol.header - num_before, symbol.end - num_before
        if not 0 <= header < num_lines:
            continue
        new_places[place] = len(kept)
        parent = None if symbol.parent is None else new_places.get(symbol.parent)
        kept.append(
            replace(
                symbol,
                start=max(symbol.start - num_before, 0),
                header=header,
                end=min(end, num_lines),
                parent=parent,
                is_complete=symbol.is_complete and end <= num_lines,
            )
        )
    return tuple(kept)


def _cut_by_indent(
    symbols: Sequence[Symbol], lines: Sequence[str], next_indent: int
) -> tuple[Symbol, ...]:
    """Mark definitions as cut that reach the end and are indented less than the text after it."""
    num_filled = max((row + 1 for row, line in enumerate(lines) if line.strip()), default=0)
    cut: list[Symbol] = []
    for symbol in symbols:
        header = lines[symbol.header].expandtabs()
        is_left_of_next = len(header) - len(header.lstrip()) < next_indent
        if symbol.end >= num_filled and is_left_of_next and symbol.kind in ("function", "class"):
            symbol = replace(symbol, is_complete=False)
        cut.append(symbol)
    return tuple(cut)
