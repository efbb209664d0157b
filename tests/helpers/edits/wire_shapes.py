"""Reduces types of a wire format to one plain form, so that different descriptions compare equal.

A shape is the name of a simple type ("string", "integer", "number", "boolean", "null", "unknown"),
{"const": value}, {"array": shape}, {"map": shape}, {"any": shapes in order}, or {"object": shapes
by name}, where a name that ends with "?" may be missing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

Shape = str | dict[str, Any]

_REFERENCE = "#/components/schemas/"


def shape_of(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Shape:
    """The shape of a JSON schema, its references resolved among `schemas`; limits are left out."""
    if "$ref" in schema:
        return shape_of(schemas[schema["$ref"].removeprefix(_REFERENCE)], schemas)
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return any_of([shape_of(one, schemas) for one in schema[word]])
    if "allOf" in schema:
        (single,) = schema["allOf"]
        return shape_of(single, schemas)
    if "enum" in schema:
        return any_of(["null" if one is None else {"const": one} for one in schema["enum"]])
    if "const" in schema:
        return {"const": schema["const"]}
    if "type" not in schema:
        return "unknown"
    if isinstance(schema["type"], list):
        return any_of([shape_of({**schema, "type": one}, schemas) for one in schema["type"]])
    if schema["type"] == "array":
        return {"array": shape_of(schema["items"], schemas)}
    if schema["type"] == "object":
        return _object_shape(schema, schemas)
    return str(schema["type"])


def _object_shape(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Shape:
    if "properties" not in schema:
        return {"map": shape_of(schema.get("additionalProperties", {}), schemas)}
    required = schema.get("required", [])
    return {
        "object": {
            name if name in required else f"{name}?": shape_of(member, schemas)
            for name, member in schema["properties"].items()
        }
    }


def any_of(shapes: list[Shape]) -> Shape:
    """The union of several shapes; nested unions are flattened, and the order does not count."""
    flat: list[Shape] = []
    for shape in shapes:
        flat += shape["any"] if isinstance(shape, dict) and "any" in shape else [shape]
    distinct = {json.dumps(shape, sort_keys=True): shape for shape in flat}
    ordered = [distinct[key] for key in sorted(distinct)]
    return ordered[0] if len(ordered) == 1 else {"any": ordered}


def in_order(shape: Shape) -> Shape:
    """A shape from another description, with its unions in our order."""
    return _rebuilt(shape, lambda one: one)


def without_integers(shape: Shape) -> Shape:
    """A shape as languages with a single kind of number see it."""
    return _rebuilt(shape, lambda one: "number" if one == "integer" else one)


def without_null(shape: Shape) -> Shape:
    """A shape in which null means the same as a missing member."""
    if not isinstance(shape, dict) or "any" not in shape:
        return shape
    return any_of([one for one in shape["any"] if one != "null"])


def all_optional(shape: Shape) -> Shape:
    """A shape with all members optional, to compare names and types alone."""
    if isinstance(shape, dict) and "object" in shape:
        members = shape["object"].items()
        return {"object": {name.rstrip("?"): all_optional(member) for name, member in members}}
    if isinstance(shape, dict) and "any" in shape:
        return any_of([all_optional(one) for one in shape["any"]])
    if isinstance(shape, dict) and "const" not in shape:
        return {word: all_optional(one) for word, one in shape.items()}
    return shape


def required_names(shape: Shape, place: str = "") -> set[str]:
    """The paths of the members that must be present."""
    if not isinstance(shape, dict) or "const" in shape:
        return set()
    if "object" not in shape:
        parts = shape["any"] if "any" in shape else list(shape.values())
        return set().union(*(required_names(part, place) for part in parts))
    names = {f"{place}/{name}" for name in shape["object"] if not name.endswith("?")}
    inner = (
        required_names(member, f"{place}/{name.rstrip('?')}")
        for name, member in shape["object"].items()
    )
    return names.union(*inner)


def _rebuilt(shape: Shape, simple: Callable[[str], str]) -> Shape:
    if isinstance(shape, str):
        return simple(shape)
    if "object" in shape:
        members = shape["object"].items()
        return {"object": {name: _rebuilt(member, simple) for name, member in members}}
    if "any" in shape:
        return any_of([_rebuilt(one, simple) for one in shape["any"]])
    if "const" in shape:
        return shape
    return {word: _rebuilt(one, simple) for word, one in shape.items()}
