"""Symbols of Go."""

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


def _method(node: Node, text: Text) -> Definition | None:
    """`func (s *Server[T]) Close()` is called "Server.Close"."""
    name, receiver = node.child_by_field_name("name"), node.child_by_field_name("receiver")
    if name is None or name.is_missing or receiver is None:
        return None
    owner = text(receiver).strip("() ").partition("[")[0].split()
    prefix = f"{owner[-1].lstrip('*')}." if owner else ""
    return Definition("function", short(prefix + text(name)), name.start_point[0])


def _subtest(node: Node, text: Text) -> Definition | None:
    """`t.Run("empty input", func(t *testing.T) { ... })`"""
    function, arguments = (
        node.child_by_field_name("function"),
        node.child_by_field_name("arguments"),
    )
    if function is None or arguments is None or function.type != "selector_expression":
        return None
    values = arguments.named_children
    is_subtest = (
        text(function).endswith(".Run")
        and len(values) == 2
        and values[0].type.endswith("string_literal")
        and values[1].type == "func_literal"
    )
    if not is_subtest:
        return None
    return Definition("other", short(text(values[0])[1:-1]), node.start_point[0])


GO = SymbolRules(
    definitions={
        "function_declaration": field_named("function"),
        "method_declaration": _method,
        "method_elem": field_named("function"),
        "type_spec": field_named("class"),
        "type_alias": field_named("class"),
        "const_spec": field_named("constant"),
        "var_spec": field_named("constant"),
        "field_declaration": field_named("constant"),
        "import_declaration": imported,
        "call_expression": _subtest,
    },
    wrappers=frozenset(
        {"type_declaration", "const_declaration", "var_declaration", "expression_statement"}
    ),
    scopes=frozenset({"func_literal"}),
    leaves=frozenset({"parameter_list", "raw_string_literal", "interpreted_string_literal"}),
    containers=frozenset(
        {
            *("literal_value", "statement_list", "interface_type"),
            *("const_declaration", "type_declaration"),
        }
    ),
)
