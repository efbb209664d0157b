"""Symbols of Java, Kotlin and Scala."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apply_service.edit.syntax.symbol_rules import (
    Definition,
    SymbolRules,
    child_named,
    child_of_type,
    field_named,
    fixed,
    imported,
    short,
)

if TYPE_CHECKING:
    from tree_sitter import Node

    from apply_service.edit.syntax.symbol_rules import Text

_COMMENTS = frozenset({"line_comment", "block_comment", "comment", "multiline_comment"})

JAVA = SymbolRules(
    definitions={
        "class_declaration": field_named("class"),
        "interface_declaration": field_named("class"),
        "enum_declaration": field_named("class"),
        "record_declaration": field_named("class"),
        "annotation_type_declaration": field_named("class"),
        "method_declaration": field_named("function"),
        "constructor_declaration": field_named("function"),
        "compact_constructor_declaration": field_named("function"),
        "annotation_type_element_declaration": field_named("function"),
        "static_initializer": fixed("function", "static"),
        "variable_declarator": field_named("constant"),
        "enum_constant": field_named("constant"),
        "import_declaration": imported,
    },
    wrappers=frozenset({"field_declaration", "constant_declaration"}),
    leading=_COMMENTS,
    scopes=frozenset({"lambda_expression"}),
    leaves=frozenset({"formal_parameters", "string_literal", "argument_list"}),
    containers=frozenset({"enum_body_declarations", "switch_block"}),
)


def _kotlin_function(node: Node, text: Text) -> Definition | None:
    """`fun String.shout()` is called "String.shout"."""
    name = node.child_by_field_name("name")
    if name is None or name.is_missing:
        return None
    receiver = ""
    for child in node.named_children:
        if child.start_byte >= name.start_byte:
            break
        if child.type in ("user_type", "nullable_type", "parenthesized_type"):
            receiver = f"{text(child)}."
    return Definition("function", short(receiver + text(name)), name.start_point[0])


def _kotlin_property(node: Node, text: Text) -> Definition | None:
    variable = child_of_type(node, "variable_declaration", "multi_variable_declaration")
    if variable is None:
        return None
    name = text(variable).partition(":")[0].strip()
    return Definition("constant", short(name), variable.start_point[0])


KOTLIN = SymbolRules(
    definitions={
        "class_declaration": field_named("class"),
        "object_declaration": field_named("class"),
        "companion_object": fixed("class", "companion object"),
        "function_declaration": _kotlin_function,
        "secondary_constructor": fixed("function", "constructor"),
        "anonymous_initializer": fixed("function", "init"),
        "property_declaration": _kotlin_property,
        "type_alias": child_named("class", "identifier", "type_identifier"),
        "enum_entry": child_named("constant", "identifier", "simple_identifier"),
        "import": imported,
        "import_header": imported,
    },
    leading=_COMMENTS,
    scopes=frozenset({"lambda_literal", "anonymous_function", "getter", "setter"}),
    leaves=frozenset({"function_value_parameters", "string_literal", "value_arguments"}),
)


def _scala_value(node: Node, text: Text) -> Definition | None:
    pattern = node.child_by_field_name("pattern") or node.child_by_field_name("name")
    if pattern is None or pattern.is_missing:
        return None
    return Definition("constant", short(text(pattern)), pattern.start_point[0])


def _scala_test(node: Node, text: Text) -> Definition | None:
    """`test("reads a line") { ... }` and `it should "read" in { ... }`"""
    if node.type == "infix_expression":
        left, operator = node.child_by_field_name("left"), node.child_by_field_name("operator")
        if left is None or operator is None or text(operator) not in ("in", "should", "when"):
            return None
        right = node.child_by_field_name("right")
        if right is None or right.type not in ("block", "indented_block"):
            return None
        return Definition("other", short(text(left)), node.start_point[0])
    function = node.child_by_field_name("function")
    if function is None or function.type != "call_expression":
        return None
    called, arguments = (
        function.child_by_field_name("function"),
        function.child_by_field_name("arguments"),
    )
    if called is None or arguments is None or text(called) not in ("test", "it", "describe"):
        return None
    return Definition("other", short(text(arguments)[1:-1].strip('"')), node.start_point[0])


SCALA = SymbolRules(
    definitions={
        "class_definition": field_named("class"),
        "object_definition": field_named("class", prefix="object "),
        "package_object": field_named("class", prefix="package object "),
        "trait_definition": field_named("class"),
        "enum_definition": field_named("class"),
        "function_definition": field_named("function"),
        "function_declaration": field_named("function"),
        "given_definition": field_named("class", prefix="given "),
        "val_definition": _scala_value,
        "var_definition": _scala_value,
        "val_declaration": _scala_value,
        "var_declaration": _scala_value,
        "type_definition": field_named("class"),
        "simple_enum_case": field_named("constant"),
        "full_enum_case": field_named("constant"),
        "call_expression": _scala_test,
        "infix_expression": _scala_test,
        "import_declaration": imported,
    },
    wrappers=frozenset({"enum_case_definitions", "extension_definition", "template_body"}),
    leading=_COMMENTS,
    scopes=frozenset({"lambda_expression", "block", "indented_block"}),
    leaves=frozenset({"parameters", "class_parameters", "string", "interpolated_string"}),
    containers=frozenset({"template_body", "with_template_body", "case_block"}),
)
