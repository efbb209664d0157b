"""Symbols of HTML, CSS, JSON, YAML, TOML, Markdown and SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apply_service.edit.syntax.symbol_rules import (
    Definition,
    SymbolRules,
    child_named,
    child_of_type,
    field_named,
    imported,
    short,
)

if TYPE_CHECKING:
    from tree_sitter import Node

    from apply_service.edit.syntax.symbol_rules import Reader, Text

_STRUCTURAL_TAGS = frozenset(
    {
        *("html", "head", "title", "body", "header", "main", "footer", "nav", "section", "aside"),
        *("article", "form", "table", "thead", "tbody", "template", "dialog", "script", "style"),
    }
)
_ITEM_NAME_KEYS = frozenset({"name", "id", "key", "title", "job_name", "alias", "host"})


def _element(node: Node, text: Text) -> Definition | None:
    """An element with an id ("div#main") or with a structural tag ("header")."""
    tag = child_of_type(node, "start_tag", "self_closing_tag")
    name = None if tag is None else child_of_type(tag, "tag_name")
    if tag is None or name is None:
        return None
    for attribute in tag.named_children[1:]:
        key, _, value = text(attribute).partition("=")
        if key.strip().lower() == "id" and value:
            identity = value.strip().strip("\"'")
            return Definition("other", short(f"{text(name)}#{identity}"), name.start_point[0])
    if text(name).lower() not in _STRUCTURAL_TAGS:
        return None
    return Definition("other", text(name), name.start_point[0])


HTML = SymbolRules(
    definitions={"element": _element, "script_element": _element, "style_element": _element},
    leaves=frozenset({"raw_text", "start_tag", "script_element", "style_element"}),
    containers=frozenset({"element"}),
)


def _rule(node: Node, text: Text) -> Definition | None:
    """A rule by its selectors, an at-rule by its whole head, on one line."""
    head = text(node)[:2000].partition("{")[0]
    return Definition("rule", short(head), node.start_point[0]) if head.strip() else None


CSS = SymbolRules(
    definitions={
        "rule_set": _rule,
        "media_statement": _rule,
        "supports_statement": _rule,
        "keyframes_statement": _rule,
        "keyframe_block": _rule,
        "at_rule": _rule,
        "scope_statement": _rule,
        "declaration": child_named("key", "property_name"),
        "import_statement": imported,
    },
    leading=frozenset({"comment", "js_comment"}),
    containers=frozenset({"keyframe_block_list"}),
)


def _pair(node: Node, text: Text) -> Definition | None:
    """The key of a JSON or YAML pair, without quotes."""
    key = node.child_by_field_name("key")
    if key is None or key.is_missing:
        return None
    return Definition("key", short(text(key)).strip("\"'"), key.start_point[0])


JSON = SymbolRules(
    definitions={"pair": _pair},
    leaves=frozenset({"string"}),
    containers=frozenset({"object", "array"}),
)


def _sequence_item(node: Node, text: Text) -> Definition | None:
    """An item that says its name in its first line: "- name: build"."""
    head = text(node)[:400].partition("\n")[0].removeprefix("-").strip()
    key, colon, value = head.partition(":")
    if not colon or not value.strip() or key.strip() not in _ITEM_NAME_KEYS:
        return None
    return Definition("key", short(f"- {head}"), node.start_point[0])


YAML = SymbolRules(
    definitions={"block_mapping_pair": _pair, "block_sequence_item": _sequence_item},
    wrappers=frozenset({"block_node", "block_mapping"}),
    leaves=frozenset({"block_scalar", "double_quote_scalar", "single_quote_scalar"}),
    containers=frozenset({"stream", "block_node", "block_mapping", "block_sequence"}),
)


def _first_key(kind: str) -> Reader:
    return child_named(kind, "dotted_key", "bare_key", "quoted_key")


TOML = SymbolRules(
    definitions={
        "table": _first_key("section"),
        "table_array_element": _first_key("section"),
        "pair": _first_key("key"),
    },
    leaves=frozenset({"string"}),
    containers=frozenset({"table", "table_array_element", "array"}),
)


def _heading(node: Node, text: Text) -> Definition | None:
    content = node.child_by_field_name("heading_content")
    name = "" if content is None else text(content)
    return Definition("section", short(name), node.start_point[0])


MARKDOWN = SymbolRules(
    definitions={"atx_heading": _heading, "setext_heading": _heading},
    leading=frozenset(),
    leaves=frozenset({"fenced_code_block", "minus_metadata", "plus_metadata", "html_block"}),
    containers=frozenset({"section", "list"}),
)


def _created(kind: str) -> Reader:
    return child_named(kind, "object_reference", "identifier")


SQL = SymbolRules(
    definitions={
        "create_table": _created("class"),
        "create_view": _created("class"),
        "create_materialized_view": _created("class"),
        "create_type": _created("class"),
        "create_schema": _created("class"),
        "create_database": _created("class"),
        "create_sequence": _created("class"),
        "create_role": _created("class"),
        "create_extension": _created("class"),
        "create_policy": _created("class"),
        "create_index": field_named("constant", field="column"),
        "create_function": _created("function"),
        "create_procedure": _created("function"),
        "create_trigger": _created("function"),
        "column_definition": field_named("key"),
    },
    wrappers=frozenset({"statement"}),
    leading=frozenset({"comment", "marginalia"}),
    leaves=frozenset({"function_body", "literal"}),
    containers=frozenset({"column_definitions"}),
)
