"""Compares OpenAPI documents: members a newer one took away, and new requirements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

Document = dict[str, Any]
Side = Literal["sent", "received"]

_UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems")
_LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems")
_PREFIX = "#/components/schemas/"


def losses(old: Document, new: Document) -> list[str]:
    """Each loss for a client of the old document, one line each."""
    return list(_Comparison(old, new).losses())


class _Comparison:
    def __init__(self, old: Document, new: Document) -> None:
        self._old, self._new = old, new
        self._seen: set[tuple[str, str, Side]] = set()

    def losses(self) -> Iterator[str]:
        for path, operations in self._old["paths"].items():
            for method, operation in operations.items():
                found = self._new["paths"].get(path, {}).get(method)
                place = f"{method.upper()} {path}"
                if found is None:
                    yield f"{place} is gone"
                    continue
                yield from self._parameters(operation, found, place)
                yield from self._bodies(operation, found, place)
                yield from self._responses(operation, found, place)

    def _parameters(self, old: Document, new: Document, place: str) -> Iterator[str]:
        before = {item["name"]: item for item in old.get("parameters", [])}
        after = {item["name"]: item for item in new.get("parameters", [])}
        for name in before.keys() - after.keys():
            yield f"{place}: the parameter {name} is gone"
        for name, item in after.items():
            if item.get("required") and not before.get(name, {}).get("required"):
                yield f"{place}: the parameter {name} is required now"
            if name in before:
                schemas = before[name]["schema"], item["schema"]
                yield from self._schemas(*schemas, f"{place}: {name}", "sent")

    def _bodies(self, old: Document, new: Document, place: str) -> Iterator[str]:
        before, after = old.get("requestBody", {}), new.get("requestBody", {})
        if after.get("required") and not before.get("required"):
            yield f"{place}: a body is required now"
        yield from self._contents(before, after, f"{place} body", "sent")

    def _responses(self, old: Document, new: Document, place: str) -> Iterator[str]:
        for status, response in old["responses"].items():
            found = new["responses"].get(status)
            if found is None:
                yield f"{place}: the response {status} is gone"
            else:
                yield from self._contents(response, found, f"{place} {status}", "received")

    def _contents(self, old: Document, new: Document, place: str, side: Side) -> Iterator[str]:
        for media_type, media in old.get("content", {}).items():
            found = new.get("content", {}).get(media_type)
            if found is None:
                yield f"{place}: {media_type} is gone"
            else:
                yield from self._schemas(media["schema"], found["schema"], place, side)

    def _schemas(self, old: Document, new: Document, place: str, side: Side) -> Iterator[str]:
        pair = old.get("$ref", ""), new.get("$ref", ""), side
        if any(pair[:2]) and pair in self._seen:
            return
        self._seen.add(pair)
        after = [self._resolved(self._new, schema) for schema in _variants(new)]
        for variant in _variants(old):
            before = self._resolved(self._old, variant)
            tries = [list(self._plain(before, schema, place, side)) for schema in after]
            yield from min(tries, key=len)

    def _plain(self, old: Document, new: Document, place: str, side: Side) -> Iterator[str]:
        if not new:
            return
        if _kind(old) != _kind(new):
            yield f"{place}: {_kind(old)} became {_kind(new)}"
            return
        gone = [value for value in old.get("enum", []) if value not in new.get("enum", [value])]
        if gone or ("enum" in new and "enum" not in old):
            yield f"{place}: of the values {gone or 'all but ' + str(new['enum'])} are gone"
        if side == "sent":
            yield from _narrowed(old, new, place)
        yield from self._members(old, new, place, side)
        if "items" in old:
            yield from self._schemas(old["items"], new.get("items", {}), f"{place}[]", side)

    def _members(self, old: Document, new: Document, place: str, side: Side) -> Iterator[str]:
        before, after = old.get("properties", {}), new.get("properties", {})
        needed_before, needed = set(old.get("required", [])), set(new.get("required", []))
        if side == "sent":
            for name in sorted(needed - needed_before):
                yield f"{place}.{name} is required now"
            if "additionalProperties" in new and "additionalProperties" not in old:
                yield f"{place}: unknown members are refused now"
        else:
            for name in sorted((needed_before - needed) & after.keys()):
                yield f"{place}.{name} may be missing now"
        for name, schema in before.items():
            if name not in after:
                yield f"{place}.{name} is gone"
            else:
                yield from self._schemas(schema, after[name], f"{place}.{name}", side)

    def _resolved(self, document: Document, schema: Document) -> Document:
        if "$ref" not in schema:
            return schema
        found: Document = document["components"]["schemas"].get(
            schema["$ref"].removeprefix(_PREFIX), {"type": "missing"}
        )
        return found


def _variants(schema: Document) -> list[Document]:
    """The alternatives that a schema allows."""
    options = schema.get("anyOf") or schema.get("oneOf")
    if options:
        return [variant for option in options for variant in _variants(option)]
    kind = schema.get("type")
    if isinstance(kind, list):
        return [{**schema, "type": one} for one in kind]
    return [schema]


def _kind(schema: Document) -> str:
    values = schema.get("enum")
    return str(schema.get("type") or (f"{type(values[0]).__name__} enum" if values else "any"))


def _narrowed(old: Document, new: Document, place: str) -> Iterator[str]:
    for names, is_tighter in ((_UPPER, float.__lt__), (_LOWER, float.__gt__)):
        for name in names:
            if name in new and (name not in old or is_tighter(float(new[name]), float(old[name]))):
                yield f"{place}: {name} is {new[name]} now"
