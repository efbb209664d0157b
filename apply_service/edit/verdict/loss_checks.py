"""Finds lines, imports and definitions that the result lost without the update saying so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from apply_service.edit.finding import Finding
from apply_service.edit.syntax.symbol import Symbol
from apply_service.edit.text.words import WORD, counted
from apply_service.edit.verdict.comparison import MAX_EXPLAINED_LOSS, Comparison, shown

# Kinds of symbols whose loss is reported by name; the lines of others are reported as lines.
NAMED_KINDS = frozenset({"function", "class", "constant", "section", "rule"})


def _check_lines_lost(comparison: Comparison) -> Iterator[Finding]:
    """Lines of the original go only where the update replaces or removes something."""
    named = _import_places(comparison)
    for symbol in _lost_symbols(comparison):
        named.update(range(symbol.start, symbol.end))
    num_filled = len(comparison.original) - comparison.original_counts[""]
    num_lost = sum(len(loss.places) for loss in comparison.losses)
    is_most = num_lost > MAX_EXPLAINED_LOSS and 2 * num_lost > num_filled
    for loss in comparison.losses:
        unnamed = [place for place in loss.places if place not in named]
        if len(unnamed) <= loss.num_replaced and not is_most:
            continue
        first = (unnamed or loss.places)[0]
        yield Finding(
            code="lines_lost",
            severity="error" if is_most else "warning",
            message=f"{counted(len(loss.places), 'line')} of the original"
            f" {_are(loss.places)} gone from line {first + 1} on,"
            f" more than the update accounts for: {shown(comparison.original[first])}",
            hint="if they should go, send the lines before and after them with nothing between",
            line=first + 1,
        )


def _check_import_dropped(comparison: Comparison) -> Iterator[Finding]:
    """Imports go only where the update replaces or removes them."""
    imports = _import_places(comparison)
    for loss in comparison.losses:
        dropped = [place for place in loss.places if place in imports]
        if dropped:
            yield Finding(
                code="import_dropped",
                severity="warning",
                message=f"{counted(len(dropped), 'import line')} of the original"
                f" {_are(dropped)} gone from line {dropped[0] + 1} on, and the update does not"
                f" say so: {shown(comparison.original[dropped[0]])}",
                hint="if they should go, send the lines before and after them with nothing between",
                line=dropped[0] + 1,
            )


def _check_symbol_lost(comparison: Comparison) -> Iterator[Finding]:
    for symbol in _lost_symbols(comparison):
        yield Finding(
            code="symbol_lost",
            severity="warning",
            message=f"the {symbol.kind} {symbol.name} on line {symbol.header + 1} of the original"
            " is gone; the update neither replaces nor removes it",
            hint=f"if it should go, add a comment line: remove {symbol.name}",
            line=symbol.header + 1,
        )


def check_lost_names_used(comparison: Comparison) -> Iterator[Finding]:
    """A merge must not lose a definition or an import that the result still uses."""
    if comparison.tree is None or comparison.result_tree is None:
        return
    used = Counter(word for line in comparison.result_texts for word in WORD.findall(line))
    known = {symbol.name for symbol in comparison.result_tree.symbols}
    for symbol in comparison.tree.symbols:
        is_lost = symbol.kind in NAMED_KINDS and symbol.name not in known
        if is_lost and symbol.name in used and not _is_symbol_removed(comparison, symbol):
            yield Finding(
                code="symbol_lost",
                severity="warning",
                message=f"the {symbol.kind} {symbol.name} on line {symbol.header + 1} of the"
                " original is gone, and the result still names it",
                hint=f"send the lines around {symbol.name}, or what takes its place",
                line=symbol.header + 1,
            )
    imported = {
        word
        for place in comparison.result_imports
        for word in WORD.findall(comparison.result_texts[place])
    }
    kept = Counter(comparison.result_texts)
    for place in sorted(_import_places(comparison)):
        line = comparison.original_texts[place]
        lost = set(WORD.findall(line)) - imported
        is_kept = not line or kept[line] or comparison.removed_counts[line]
        if lost & used.keys() and not is_kept:
            yield Finding(
                code="import_dropped",
                severity="warning",
                message=f"the import on line {place + 1} of the original is gone, and the result"
                f" still uses {min(lost & used.keys())}",
                hint="send the imports before and after a new one",
                line=place + 1,
            )


def _lost_symbols(comparison: Comparison) -> list[Symbol]:
    """Top-level definitions that are gone without being replaced, renamed or removed."""
    if comparison.tree is None or comparison.result_tree is None:
        return []
    names_before = {symbol.name for symbol in comparison.tree.symbols}
    names_after = {symbol.name for symbol in comparison.result_tree.symbols}
    lost = {
        symbol.header: symbol
        for symbol in comparison.tree.symbols
        if symbol.parent is None
        and symbol.kind in NAMED_KINDS
        and symbol.name not in names_after
        and not _is_symbol_removed(comparison, symbol)
    }
    if not lost:
        return []
    new_headers = {
        symbol.header
        for symbol in comparison.result_tree.symbols
        if symbol.name not in names_before
        and comparison.sent_counts[comparison.result_texts[symbol.header]]
    }
    meant: set[int] = set()
    for hunk in comparison.hunks:
        headers = [place for place in range(hunk.old_start, hunk.old_end) if place in lost]
        if headers:
            new = range(hunk.new_start, hunk.new_end)
            num_new = sum(1 for place in new if place in new_headers)
            num_lost = len(comparison.unnamed_losses(hunk))
            is_meant = comparison.is_cut_out(hunk, num_lost=num_lost)
            meant.update(headers if is_meant else headers[:num_new])
    return [symbol for header, symbol in lost.items() if header not in meant]


def _is_symbol_removed(comparison: Comparison, symbol: Symbol) -> bool:
    header = comparison.original[symbol.header]
    return (
        comparison.snippet.format == "whole"
        or comparison.removed_counts[comparison.original_texts[symbol.header]] > 0
        or comparison.has_removed_name(header)
    )


def _are(places: Sequence[int]) -> str:
    return "is" if len(places) == 1 else "are"


def _import_places(comparison: Comparison) -> set[int]:
    spans = () if comparison.tree is None else comparison.tree.imports
    return {place for start, end in spans for place in range(start, end)}


LOSS_CHECKS: tuple[Callable[[Comparison], Iterator[Finding]], ...] = (
    _check_lines_lost,
    _check_import_dropped,
    _check_symbol_lost,
)
