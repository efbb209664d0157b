"""Symbols of Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apply_service.edit.syntax.symbol_rules import (
    Definition,
    SymbolRules,
    field_named,
    imported,
    short,
)

if TYPE_CHECKING:
    from tree_sitter import Node

    from apply_service.edit.syntax.symbol_rules import Text

_TARGETS = frozenset({"identifier", "attribute", "pattern_list", "tuple_pattern"})


def _function(node: Node, text: Text) -> Definition | None:
    name = node.child_by_field_name("name")
    if name is None or name.is_missing:
        return None
    return Definition("function", text(name), name.start_point[0], is_cut=_lacks_body(node))


def _class(node: Node, text: Text) -> Definition | None:
    name = node.child_by_field_name("name")
    if name is None or name.is_missing:
        return None
    return Definition("class", text(name), name.start_point[0], is_cut=_lacks_body(node))


def _lacks_body(node: Node) -> bool:
    body = node.child_by_field_name("body")
    return body is None or body.named_child_count == 0


def _assignment(node: Node, text: Text) -> Definition | None:
    left = node.child_by_field_name("left")
    if left is None or left.type not in _TARGETS:
        return None
    return Definition("constant", short(text(left)), left.start_point[0])


def _main_guard(node: Node, text: Text) -> Definition | None:
    condition = node.child_by_field_name("condition")
    if condition is None or not text(condition).startswith("__name__"):
        return None
    return Definition("other", short(text(condition)), node.start_point[0], is_open=True)


PYTHON = SymbolRules(
    definitions={
        "function_definition": _function,
        "class_definition": _class,
        "assignment": _assignment,
        "type_alias_statement": field_named("constant", field="left"),
        "if_statement": _main_guard,
        "import_statement": imported,
        "import_from_statement": imported,
        "future_import_statement": imported,
    },
    wrappers=frozenset({"decorated_definition", "expression_statement", "block"}),
    leading=frozenset({"comment", "decorator"}),
    scopes=frozenset({"lambda"}),
    leaves=frozenset({"string", "parenthesized_expression", "parameters", "argument_list"}),
    containers=frozenset({"block", "module"}),
)
