"""The form of the tables in `grammar_rules`, which turn a grammar's node types into symbols."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from tree_sitter import Node

    Text = Callable[[Node], str]
    # Reads a node: what it defines, or None if it defines nothing.
    Reader = Callable[[Node, Text], "Definition | None"]

MAX_NAME_CHARS = 200


class Definition(msgspec.Struct, frozen=True, gc=False):
    """The definition that a node makes; `row` is the line of the name.

    The kind "import" marks an import statement. `is_open` means that the children count as top
    level (a `describe` block); `is_cut` means that the body is missing.
    """

    kind: str
    name: str
    row: int
    is_open: bool = False
    is_cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolRules:
    """The symbols of one grammar, by node type.

    `wrappers` hand their first line on to the definition inside (decorators, `export`, a block
    without braces); they are looked into even on one line. `leading` nodes stand before a
    definition and belong to it: comments, attributes. `scopes` hide constants and imports inside,
    such as unnamed functions;
    `opens` are nodes whose next scope hides nothing. `leaves` are never looked into.
    `containers` hold statements one after another, beyond those that `is_container` knows.
    """

    definitions: Mapping[str, Reader]
    wrappers: frozenset[str] = frozenset()
    leading: frozenset[str] = frozenset({"comment"})
    scopes: frozenset[str] = frozenset()
    opens: frozenset[str] = frozenset()
    leaves: frozenset[str] = frozenset()
    containers: frozenset[str] = field(default=frozenset())


def field_named(kind: str, *, field: str = "name", prefix: str = "") -> Reader:
    """A reader for nodes that carry their name in one field."""

    def read(node: Node, text: Text) -> Definition | None:
        name = node.child_by_field_name(field)
        if name is None or name.is_missing:
            return None
        return Definition(kind, prefix + short(text(name)), name.start_point[0])

    return read


def child_named(kind: str, *types: str, prefix: str = "") -> Reader:
    """A reader for nodes whose name is their first child of one of `types`."""

    def read(node: Node, text: Text) -> Definition | None:
        name = child_of_type(node, *types)
        if name is None or name.is_missing:
            return None
        return Definition(kind, prefix + short(text(name)), name.start_point[0])

    return read


def fixed(kind: str, name: str) -> Reader:
    """A reader for nodes whose name is always the same (`constructor`, `init`)."""

    def read(node: Node, text: Text) -> Definition | None:
        return Definition(kind, name, node.start_point[0])

    return read


def imported(node: Node, text: Text) -> Definition | None:
    """A reader for import statements."""
    return Definition("import", "", node.start_point[0])


def child_of_type(node: Node, *types: str) -> Node | None:
    """The first named child of one of `types`."""
    for child in node.named_children:
        if child.type in types:
            return child
    return None


def short(name: str) -> str:
    """A name on one line, cut at `MAX_NAME_CHARS`."""
    return " ".join(name[: MAX_NAME_CHARS * 2].split())[:MAX_NAME_CHARS]
