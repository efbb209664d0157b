"""Python functions of one name in one class: getter and setter, overload stubs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from apply_service.edit.syntax.symbol import Symbol

_DECORATOR = re.compile(r"\s*@\s*(?P<called>[\w.]+)")


def tell_accessors_apart(symbols: Sequence[Symbol], lines: Sequence[str]) -> list[Symbol]:
    """Name setters as they are decorated ("size.setter"); overload stubs become "other".

    So one accessor never replaces another, nor a stub the function that it describes.
    """
    return [
        _told_apart(symbol, lines)
        if symbol.kind == "function" and symbol.start < symbol.header
        else symbol
        for symbol in symbols
    ]


def _told_apart(symbol: Symbol, lines: Sequence[str]) -> Symbol:
    for line in lines[symbol.start : symbol.header]:
        match = _DECORATOR.match(line)
        if match is None:
            continue
        owner, _, called = match["called"].rpartition(".")
        if owner == symbol.name and called in ("setter", "getter", "deleter"):
            return replace(symbol, name=f"{symbol.name}.{called}")
        if called == "overload":
            return replace(symbol, kind="other")
    return symbol
