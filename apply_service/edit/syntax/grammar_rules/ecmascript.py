"""Symbols of JavaScript and TypeScript, with JSX or without."""

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

_FUNCTIONS = frozenset({"arrow_function", "function_expression", "generator_function"})
_CLASSES = frozenset({"class"})
_LITERALS = frozenset({"object", "array"})
_SUITES = frozenset({"describe", "context", "suite"})
_TEST_BLOCKS = _SUITES | {
    *("it", "test", "specify", "bench"),
    *("beforeEach", "afterEach", "beforeAll", "afterAll", "before", "after"),
}
# Calls that give their function back: `const Row = memo(forwardRef((props) => ...))`.
_FUNCTION_CALLS = frozenset(
    {"memo", "forwardRef", "observer", "useCallback", "debounce", "throttle", "once", "promisify"}
)
_MAX_CALL_DEPTH = 6


def _value_kind(value: Node | None, text: Text) -> str:
    """The kind of definition in `name = value`; `memo(() => ...)` defines a function."""
    for _ in range(_MAX_CALL_DEPTH):
        if value is None:
            break
        if value.type in _FUNCTIONS:
            return "function"
        if value.type in _CLASSES:
            return "class"
        called = value.child_by_field_name("function")
        arguments = value.child_by_field_name("arguments")
        if called is None or arguments is None or not arguments.named_children:
            break
        if text(called).rpartition(".")[2] not in _FUNCTION_CALLS:
            break
        value = arguments.named_children[0]
    return "constant"


def _is_require(value: Node | None, text: Text) -> bool:
    """True if `require(...)` is at the root of members and calls: `require("a").b()`."""
    for _ in range(_MAX_CALL_DEPTH):
        if value is None:
            return False
        if value.type == "member_expression":
            value = value.child_by_field_name("object")
        elif value.type == "call_expression":
            value = value.child_by_field_name("function")
        else:
            return value.type == "identifier" and text(value) == "require"
    return False


def _declarator(node: Node, text: Text) -> Definition | None:
    name = node.child_by_field_name("name")
    value = node.child_by_field_name("value")
    if name is None or name.is_missing:
        return None
    if _is_require(value, text):
        return Definition("import", "", node.start_point[0])
    return Definition(_value_kind(value, text), short(text(name)), name.start_point[0])


def _assignment(node: Node, text: Text) -> Definition | None:
    """`exports.parse = ...`, `Parser.prototype.read = function ...`; not plain statements."""
    left = node.child_by_field_name("left")
    if left is None or left.type not in ("member_expression", "identifier"):
        return None
    kind = _value_kind(node.child_by_field_name("right"), text)
    return Definition(kind, short(text(left)), left.start_point[0])


def _method(node: Node, text: Text) -> Definition | None:
    """A method; getter and setter of one property are told apart, as they are written."""
    name = node.child_by_field_name("name")
    if name is None or name.is_missing:
        return None
    accessor = next((child.type for child in node.children if child.type in ("get", "set")), "")
    written = f"{accessor} {text(name)}" if accessor else text(name)
    return Definition("function", short(written), name.start_point[0])


def _class_field(node: Node, text: Text) -> Definition | None:
    name = node.child_by_field_name("name") or node.child_by_field_name("property")
    if name is None or name.is_missing:
        return None
    kind = _value_kind(node.child_by_field_name("value"), text)
    return Definition(kind, short(text(name)), name.start_point[0])


def _pair(node: Node, text: Text) -> Definition | None:
    """An entry of an object literal: a function, or one that takes several lines."""
    key, value = node.child_by_field_name("key"), node.child_by_field_name("value")
    if key is None or value is None:
        return None
    name = short(text(key)).strip("'\"")
    if value.type in _FUNCTIONS:
        return Definition("function", name, key.start_point[0])
    if value.type in _LITERALS and value.start_point[0] != value.end_point[0]:
        return Definition("key", name, key.start_point[0])
    return None


def _call(node: Node, text: Text) -> Definition | None:
    """A test block: `describe("parser", ...)`, `it.each(rows)("reads %s", ...)`.

    Or a handler that is registered under a text: `app.get("/users", (request) => ...)`.
    """
    called, arguments = (
        node.child_by_field_name("function"),
        node.child_by_field_name("arguments"),
    )
    function = called
    for _ in range(_MAX_CALL_DEPTH):
        if function is None or function.type not in ("member_expression", "call_expression"):
            break
        inner = "object" if function.type == "member_expression" else "function"
        function = function.child_by_field_name(inner)
    if called is None or function is None or arguments is None or function.type != "identifier":
        return None
    root, values = text(function), arguments.named_children
    if not values or values[-1].type == "comment":
        return None
    if not any(value.type in _FUNCTIONS for value in values):
        return None
    is_titled = values[0].type in ("string", "template_string")
    name = text(values[0])[1:-1] if is_titled else root
    if root in _TEST_BLOCKS:
        return Definition("other", short(name), node.start_point[0], is_open=root in _SUITES)
    if not is_titled or called.type != "member_expression":
        return None
    method = text(called).rpartition(".")[2]
    return Definition("other", short(f"{method} {name}"), node.start_point[0])


def _default_export(node: Node, text: Text) -> Definition | None:
    """`export default { ... }` has no name of its own."""
    value = node.child_by_field_name("value")
    if value is None:
        return None
    return Definition(_value_kind(value, text), "default", node.start_point[0])


_JAVASCRIPT_DEFINITIONS = {
    "function_declaration": field_named("function"),
    "generator_function_declaration": field_named("function"),
    "class_declaration": field_named("class"),
    "method_definition": _method,
    "field_definition": _class_field,
    "variable_declarator": _declarator,
    "assignment_expression": _assignment,
    "pair": _pair,
    "call_expression": _call,
    "export_statement": _default_export,
    "import_statement": imported,
}
_WRAPPERS = frozenset(
    {"export_statement", "lexical_declaration", "variable_declaration", "expression_statement"}
)
_LEAVES = frozenset({"string", "template_string", "regex", "formal_parameters"})

JAVASCRIPT = SymbolRules(
    definitions=_JAVASCRIPT_DEFINITIONS,
    wrappers=_WRAPPERS,
    leading=frozenset({"comment", "decorator"}),
    scopes=_FUNCTIONS,
    opens=frozenset({"parenthesized_expression"}),
    leaves=_LEAVES,
    containers=frozenset({"object", "array", "switch_body"}),
)

TYPESCRIPT = SymbolRules(
    definitions={
        **_JAVASCRIPT_DEFINITIONS,
        "public_field_definition": _class_field,
        "abstract_class_declaration": field_named("class"),
        "interface_declaration": field_named("class"),
        "enum_declaration": field_named("class"),
        "type_alias_declaration": field_named("class"),
        "internal_module": field_named("class"),
        "module": field_named("class"),
        "function_signature": field_named("other"),
        "method_signature": field_named("function"),
        "abstract_method_signature": field_named("function"),
        "property_signature": field_named("constant"),
        "enum_assignment": field_named("constant"),
    },
    wrappers=_WRAPPERS | {"ambient_declaration"},
    leading=frozenset({"comment", "decorator"}),
    scopes=_FUNCTIONS,
    opens=frozenset({"parenthesized_expression"}),
    leaves=_LEAVES,
    containers=frozenset({"object", "array", "switch_body"}),
)
