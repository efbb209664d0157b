"""Symbols of Rust."""

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


def _implementation(node: Node, text: Text) -> Definition | None:
    """`impl Display for Point`, never confused with `struct Point` or another trait's block."""
    owner, trait = node.child_by_field_name("type"), node.child_by_field_name("trait")
    if owner is None or owner.is_missing:
        return None
    name = text(owner) if trait is None else f"{text(trait)} for {text(owner)}"
    return Definition("class", short(f"impl {name}"), node.start_point[0])


def _module(node: Node, text: Text) -> Definition | None:
    """A module with a body; `mod parser;` is a mere declaration."""
    name = node.child_by_field_name("name")
    if name is None or name.is_missing:
        return None
    kind = "other" if node.child_by_field_name("body") is None else "class"
    return Definition(kind, text(name), name.start_point[0])


RUST = SymbolRules(
    definitions={
        "function_item": field_named("function"),
        "function_signature_item": field_named("function"),
        "macro_definition": field_named("function"),
        "struct_item": field_named("class"),
        "enum_item": field_named("class"),
        "union_item": field_named("class"),
        "trait_item": field_named("class"),
        "type_item": field_named("class"),
        "impl_item": _implementation,
        "mod_item": _module,
        "const_item": field_named("constant"),
        "static_item": field_named("constant"),
        "associated_type": field_named("constant"),
        "field_declaration": field_named("constant"),
        "enum_variant": field_named("constant"),
        "use_declaration": imported,
        "extern_crate_declaration": imported,
    },
    wrappers=frozenset({"foreign_mod_item"}),
    leading=frozenset({"line_comment", "block_comment", "attribute_item"}),
    scopes=frozenset({"closure_expression"}),
    leaves=frozenset({"token_tree", "string_literal", "raw_string_literal", "parameters"}),
    containers=frozenset({"enum_variant_list", "match_block", "field_initializer_list"}),
)
