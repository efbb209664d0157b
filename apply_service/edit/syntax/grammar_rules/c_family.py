"""Symbols of C, C++ and C#."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apply_service.edit.syntax.symbol_rules import (
    Definition,
    SymbolRules,
    field_named,
    fixed,
    imported,
    short,
)

if TYPE_CHECKING:
    from tree_sitter import Node

    from apply_service.edit.syntax.symbol_rules import Reader, Text

_DECLARATORS = frozenset(
    {
        *("pointer_declarator", "reference_declarator", "parenthesized_declarator"),
        *("function_declarator", "array_declarator", "init_declarator", "attributed_declarator"),
    }
)
_MAX_DECLARATOR_DEPTH = 20


def _declared_name(node: Node) -> Node | None:
    """The name inside pointers, parameters and initial values."""
    inner = node.child_by_field_name("declarator")
    for _ in range(_MAX_DECLARATOR_DEPTH):
        if inner is None or inner.type not in _DECLARATORS:
            return inner
        following = inner.child_by_field_name("declarator")
        if following is None and inner.named_children:
            following = inner.named_children[-1]
        inner = following
    return None


def _declared(kind: str) -> Reader:
    def read(node: Node, text: Text) -> Definition | None:
        name = _declared_name(node)
        if name is None or name.is_missing:
            return None
        return Definition(kind, short(text(name)), name.start_point[0])

    return read


def _with_body(node: Node, text: Text) -> Definition | None:
    """A struct, union, enum or class where it is defined, not where it is named as a type."""
    name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
    if name is None or name.is_missing or body is None:
        return None
    return Definition("class", short(text(name)), name.start_point[0])


def _namespace(node: Node, text: Text) -> Definition | None:
    name = node.child_by_field_name("name")
    return Definition("class", "namespace" if name is None else text(name), node.start_point[0])


_C_DEFINITIONS = {
    "function_definition": _declared("function"),
    "declaration": _declared("constant"),
    "field_declaration": _declared("constant"),
    "type_definition": _declared("class"),
    "struct_specifier": _with_body,
    "union_specifier": _with_body,
    "enum_specifier": _with_body,
    "enumerator": field_named("constant"),
    "preproc_def": field_named("constant"),
    "preproc_function_def": field_named("constant"),
    "preproc_include": imported,
}
_C_LEAVES = frozenset({"parameter_list", "string_literal", "raw_string_literal", "preproc_arg"})
_C_CONTAINERS = frozenset(
    {
        *("compound_statement", "preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif"),
        *("initializer_list", "case_statement"),
    }
)

C = SymbolRules(definitions=_C_DEFINITIONS, leaves=_C_LEAVES, containers=_C_CONTAINERS)

CPP = SymbolRules(
    definitions={
        **_C_DEFINITIONS,
        "class_specifier": _with_body,
        "namespace_definition": _namespace,
        "alias_declaration": field_named("class"),
        "concept_definition": field_named("class"),
        "using_declaration": imported,
    },
    wrappers=frozenset({"template_declaration", "linkage_specification"}),
    scopes=frozenset({"lambda_expression"}),
    leaves=_C_LEAVES,
    containers=_C_CONTAINERS,
)


def _operator(node: Node, text: Text) -> Definition | None:
    sign = node.child_by_field_name("operator") or node.child_by_field_name("type")
    name = "operator" if sign is None else f"operator {text(sign)}"
    return Definition("function", name, node.start_point[0])


CSHARP = SymbolRules(
    definitions={
        "namespace_declaration": field_named("class"),
        "class_declaration": field_named("class"),
        "interface_declaration": field_named("class"),
        "struct_declaration": field_named("class"),
        "enum_declaration": field_named("class"),
        "record_declaration": field_named("class"),
        "record_struct_declaration": field_named("class"),
        "method_declaration": field_named("function"),
        "constructor_declaration": field_named("function"),
        "destructor_declaration": field_named("function", prefix="~"),
        "local_function_statement": field_named("function"),
        "operator_declaration": _operator,
        "conversion_operator_declaration": _operator,
        "indexer_declaration": fixed("function", "this"),
        "property_declaration": field_named("constant"),
        "event_declaration": field_named("constant"),
        "delegate_declaration": field_named("class"),
        "variable_declarator": field_named("constant"),
        "enum_member_declaration": field_named("constant"),
        "using_directive": imported,
    },
    wrappers=frozenset(
        {
            *("field_declaration", "event_field_declaration", "variable_declaration"),
            *("global_statement", "local_declaration_statement"),
        }
    ),
    scopes=frozenset({"lambda_expression", "anonymous_method_expression", "accessor_declaration"}),
    leaves=frozenset({"parameter_list", "argument_list", "string_literal"}),
    containers=frozenset({"accessor_list", "switch_body", "preproc_if"}),
)
