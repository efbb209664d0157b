"""Symbols of Ruby, PHP, Lua, Bash and Swift."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apply_service.edit.syntax.symbol_rules import (
    Definition,
    SymbolRules,
    child_named,
    field_named,
    fixed,
    imported,
    short,
)

if TYPE_CHECKING:
    from tree_sitter import Node

    from apply_service.edit.syntax.symbol_rules import Text

_RUBY_OPEN_BLOCKS = frozenset(
    {"describe", "context", "feature", "namespace", "shared_examples", "shared_context"}
)
_RUBY_BLOCKS = _RUBY_OPEN_BLOCKS | {
    *("it", "specify", "scenario", "let", "let!", "subject", "before", "after", "around"),
    *("test", "setup", "teardown", "task", "scope", "included", "class_methods", "factory"),
}
_RUBY_IMPORTS = frozenset({"require", "require_relative", "load", "autoload"})


def _singleton_method(node: Node, text: Text) -> Definition | None:
    name, owner = node.child_by_field_name("name"), node.child_by_field_name("object")
    if name is None or owner is None:
        return None
    return Definition("function", short(f"{text(owner)}.{text(name)}"), name.start_point[0])


def _ruby_assignment(node: Node, text: Text) -> Definition | None:
    left = node.child_by_field_name("left")
    if left is None or left.type not in ("constant", "identifier", "scope_resolution"):
        return None
    return Definition("constant", short(text(left)), left.start_point[0])


def _ruby_call(node: Node, text: Text) -> Definition | None:
    """`require "json"`, or a block with a title (`describe`, `task`, `let`)."""
    method, arguments = node.child_by_field_name("method"), node.child_by_field_name("arguments")
    if method is None:
        return None
    called, row = text(method), node.start_point[0]
    if called in _RUBY_IMPORTS and node.child_by_field_name("receiver") is None:
        return Definition("import", "", row)
    if called not in _RUBY_BLOCKS or node.child_by_field_name("block") is None:
        return None
    title = text(arguments.named_children[0]) if arguments and arguments.named_children else called
    is_open = called in _RUBY_OPEN_BLOCKS
    return Definition("other", short(title.strip("\"':")), row, is_open=is_open)


RUBY = SymbolRules(
    definitions={
        "method": field_named("function"),
        "singleton_method": _singleton_method,
        "class": field_named("class"),
        "module": field_named("class"),
        "singleton_class": fixed("class", "class << self"),
        "assignment": _ruby_assignment,
        "call": _ruby_call,
    },
    wrappers=frozenset({"body_statement", "then"}),
    scopes=frozenset({"do_block", "block", "lambda"}),
    leaves=frozenset({"string", "heredoc_body", "method_parameters"}),
    containers=frozenset({"body_statement", "block_body", "hash", "array", "begin_block"}),
)


def _php_constant(node: Node, text: Text) -> Definition | None:
    name = node.child_by_field_name("name") or node.named_child(0)
    if name is None or name.is_missing:
        return None
    return Definition("constant", short(text(name)), name.start_point[0])


def _php_assignment(node: Node, text: Text) -> Definition | None:
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if left is None or left.type != "variable_name":
        return None
    is_function = right is not None and right.type in ("anonymous_function", "arrow_function")
    kind = "function" if is_function else "constant"
    return Definition(kind, short(text(left)), left.start_point[0])


def _php_entry(node: Node, text: Text) -> Definition | None:
    """`'driver' => ...` in an array."""
    children = node.named_children
    if len(children) < 2 or children[0].type not in ("string", "encapsed_string", "integer"):
        return None
    return Definition("key", short(text(children[0]).strip("'\"")), children[0].start_point[0])


def _php_namespace(node: Node, text: Text) -> Definition | None:
    """A namespace with braces; without them it holds nothing."""
    name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
    if body is None:
        return None
    written = "namespace" if name is None else text(name)
    return Definition("class", short(written), node.start_point[0])


PHP = SymbolRules(
    definitions={
        "class_declaration": field_named("class"),
        "interface_declaration": field_named("class"),
        "trait_declaration": field_named("class"),
        "enum_declaration": field_named("class"),
        "namespace_definition": _php_namespace,
        "function_definition": field_named("function"),
        "method_declaration": field_named("function"),
        "const_element": _php_constant,
        "property_element": _php_constant,
        "enum_case": _php_constant,
        "assignment_expression": _php_assignment,
        "array_element_initializer": _php_entry,
        "namespace_use_declaration": imported,
        "require_expression": imported,
        "require_once_expression": imported,
        "include_expression": imported,
        "include_once_expression": imported,
    },
    wrappers=frozenset({"const_declaration", "property_declaration", "expression_statement"}),
    scopes=frozenset({"anonymous_function", "arrow_function"}),
    leaves=frozenset({"formal_parameters", "string", "encapsed_string", "heredoc"}),
    containers=frozenset({"compound_statement", "array_creation_expression", "match_block"}),
)


def _lua_assignment(node: Node, text: Text) -> Definition | None:
    """`M.read = function ...`, `local json = require("json")`, a plain value."""
    if not node.named_children:
        return None
    target, values = node.named_children[0], node.named_children[-1].named_children
    value = values[0] if values else None
    if value is not None and value.type == "function_call" and _lua_call(value, text):
        return Definition("import", "", node.start_point[0])
    is_function = value is not None and value.type == "function_definition"
    kind = "function" if is_function else "constant"
    return Definition(kind, short(text(target)), target.start_point[0])


def _lua_call(node: Node, text: Text) -> Definition | None:
    name = node.child_by_field_name("name")
    if name is None or text(name) != "require":
        return None
    return Definition("import", "", node.start_point[0])


def _lua_field(node: Node, text: Text) -> Definition | None:
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    if name is None or value is None:
        return None
    kind = "function" if value.type == "function_definition" else "key"
    return Definition(kind, short(text(name)).strip("'\""), name.start_point[0])


LUA = SymbolRules(
    definitions={
        "function_declaration": field_named("function"),
        "assignment_statement": _lua_assignment,
        "function_call": _lua_call,
        "field": _lua_field,
    },
    wrappers=frozenset({"variable_declaration", "block"}),
    scopes=frozenset({"function_definition"}),
    leaves=frozenset({"parameters", "string"}),
    containers=frozenset({"table_constructor"}),
)


def _bash_source(node: Node, text: Text) -> Definition | None:
    name = node.child_by_field_name("name")
    if name is None or text(name) not in ("source", "."):
        return None
    return Definition("import", "", node.start_point[0])


BASH = SymbolRules(
    definitions={
        "function_definition": field_named("function"),
        "variable_assignment": field_named("constant"),
        "command": _bash_source,
    },
    wrappers=frozenset({"declaration_command"}),
    scopes=frozenset({"subshell", "command_substitution"}),
    leaves=frozenset({"heredoc_body", "string", "raw_string"}),
    containers=frozenset(
        {
            *("compound_statement", "do_group", "if_statement", "else_clause", "elif_clause"),
            *("case_item", "case_statement"),
        }
    ),
)


def _swift_type(node: Node, text: Text) -> Definition | None:
    """A class, struct, enum or actor; extensions are named with what they conform to."""
    name = node.child_by_field_name("name")
    if name is None or name.is_missing:
        return None
    written = text(name)
    if any(child.type == "extension" for child in node.children):
        conformances = [
            text(child) for child in node.named_children if child.type == "inheritance_specifier"
        ]
        written = f"extension {written}" + (f": {', '.join(conformances)}" if conformances else "")
    return Definition("class", short(written), name.start_point[0])


SWIFT = SymbolRules(
    definitions={
        "class_declaration": _swift_type,
        "protocol_declaration": field_named("class"),
        "function_declaration": field_named("function"),
        "protocol_function_declaration": field_named("function"),
        "init_declaration": fixed("function", "init"),
        "deinit_declaration": fixed("function", "deinit"),
        "subscript_declaration": fixed("function", "subscript"),
        "property_declaration": field_named("constant"),
        "protocol_property_declaration": child_named("constant", "pattern"),
        "typealias_declaration": field_named("class"),
        "enum_entry": field_named("constant"),
        "import_declaration": imported,
    },
    leading=frozenset({"comment", "multiline_comment"}),
    scopes=frozenset({"lambda_literal", "computed_property", "computed_getter"}),
    leaves=frozenset({"line_string_literal", "multi_line_string_literal", "value_arguments"}),
    containers=frozenset({"statements", "enum_class_body", "switch_statement"}),
)
