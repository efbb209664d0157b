"""Finds definitions that stand twice in a result and once in the original."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from apply_service.edit.finding import Finding
from apply_service.edit.syntax.languages import OVERLOADING
from apply_service.edit.syntax.symbol import Symbol
from apply_service.edit.syntax.syntax import SyntaxTree
from apply_service.edit.text.alternatives import are_alternatives
from apply_service.edit.text.line_index import indent_of
from apply_service.edit.verdict.comparison import Comparison, shown

_KINDS = frozenset({"function", "class", "constant"})
# Names from the outermost definition to the symbol, its kind and its depth in columns.
_Key = tuple[tuple[str, ...], str, int]


def check_defined_twice(comparison: Comparison) -> Iterator[Finding]:
    """Check that a new version of a definition replaces the old one instead of joining it."""
    if comparison.tree is None or comparison.result_tree is None:
        return
    language = comparison.tree.language
    before = Counter(_keys_of(comparison.tree, comparison.original))
    after: defaultdict[_Key, list[Symbol]] = defaultdict(list)
    keys = _keys_of(comparison.result_tree, comparison.result)
    for symbol, key in zip(comparison.result_tree.symbols, keys, strict=True):
        after[key].append(symbol)
    for key, symbols in after.items():
        if before[key] != 1 or len(symbols) != 2 or symbols[0].kind not in _KINDS:
            continue
        headers = [comparison.result_texts[one.header] for one in symbols]
        sent = [comparison.sent_counts[header] > 0 for header in headers]
        is_overload = symbols[0].kind == "function" and language in OVERLOADING
        if not any(sent) or (is_overload and headers[0] != headers[1]):
            continue
        first, second = (one.header for one in symbols)
        if are_alternatives(comparison.result, first, second, language):
            continue
        symbol = symbols[sent.index(True)]
        yield Finding(
            code="defined_twice",
            severity="warning",
            message=f"the update's {symbol.kind} {symbol.name} on line {symbol.header + 1} of the"
            f" result stands beside the original's: {shown(comparison.result[symbol.header])}",
            hint="if it should replace the original's, send unchanged lines around it",
            line=symbol.header + 1,
        )


def _keys_of(tree: SyntaxTree, lines: Sequence[str]) -> list[_Key]:
    """What tells each symbol of a tree from the others, in their order.

    What is defined in a condition stands deeper than what is defined anyway.
    """
    paths: list[tuple[str, ...]] = []
    for symbol in tree.symbols:
        around = () if symbol.parent is None else paths[symbol.parent]
        paths.append((*around, symbol.name))
    return [
        (path, symbol.kind, len(indent_of(lines[symbol.header])))
        for path, symbol in zip(paths, tree.symbols, strict=True)
    ]
