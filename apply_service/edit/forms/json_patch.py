"""JSON Patch (RFC 6902) on the text of a JSON file: what it does not touch stays as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from apply_service.edit.forms.form import PatchOperation
from apply_service.edit.forms.reading import FormError, Reading, lines_of, refused, shown, text_of
from apply_service.edit.syntax.grammars import MAX_LINE_BYTES, try_load_grammar
from apply_service.edit.text.work_budget import check_size, spend

if TYPE_CHECKING:
    from tree_sitter import Node

USUAL_UNIT = "  "
# Each operation parses the text again.
CHARACTERS_PER_COMPARISON = 50
_INDEX = re.compile(r"0|[1-9]\d{0,8}")
_TYPES: dict[type, str] = {dict: "object", list: "array"}
_VALUE_TYPES = frozenset({"object", "array", "string", "number", "true", "false", "null"})


def patch_readings(
    original: tuple[str, ...], operations: Sequence[PatchOperation]
) -> list[Reading]:
    """The text after all operations, made one after another. Raises FormError."""
    text = text_of(original)
    for number, operation in enumerate(operations, start=1):
        spend(1 + len(text) // CHARACTERS_PER_COMPARISON)
        text = _Document(text, number, operation).patched()
    return [Reading(lines_of(text))]


class _Place(NamedTuple):
    """Where a pointer leads: a value, or a place for one in a container.

    `child` is the member of the container that the value stands in.
    """

    container: Node | None
    child: Node | None
    value: Node | None
    key: str


class _Lifted(NamedTuple):
    """The text of a value, and the indentation of the line on which it began."""

    text: str
    indent: str


class _Document:
    """A JSON text with its values; `number` is the operation's, from 1."""

    def __init__(self, text: str, number: int, operation: PatchOperation) -> None:
        self._bytes = text.encode()
        self._number = number
        self._operation = operation
        grammar = try_load_grammar("json")
        tree = None if grammar is None else grammar.parse(self._bytes)
        values = [] if tree is None else _items(tree.root_node)
        if tree is None or tree.root_node.has_error or len(values) != 1:
            raise refused(
                "json_patch_failed",
                f"operation {number} needs a JSON file without lines of more than {MAX_LINE_BYTES}"
                " bytes, and this is none",
                "mend the file's syntax or break its lines first, or send another form",
            )
        self._root = values[0]

    def patched(self) -> str:
        """The text after the operation."""
        operation = self._operation
        if operation.op == "test":
            self._test(operation)
            return self._bytes.decode()
        if operation.op == "remove":
            return self._without(self._found(operation.path))
        if operation.op == "replace":
            place = self._found(operation.path)
            assert place.value is not None, "a value was found"
            return self._replaced(place.value, operation.value)
        if operation.op == "add":
            return self._added(operation.path, operation.value)
        source = self._found(operation.source)
        assert source.value is not None, "a value was found"
        value = self._lifted(source.value)
        if operation.op == "copy":
            return self._added(operation.path, value)
        if operation.path == operation.source:
            return self._bytes.decode()
        rest = _Document(self._without(source), self._number, operation)
        return rest._added(operation.path, value)

    def _test(self, operation: PatchOperation) -> None:
        value = self._found(operation.path).value
        assert value is not None, "a value was found"
        present = self._value_of(value)
        if _canonical(present) != _canonical(operation.value):
            value_text = json.dumps(present, ensure_ascii=False)[:80]
            raise self._failed(
                f"the test of {shown(operation.path)} fails: the value is {value_text}",
                "read the file again and send operations for what it has now",
                value.start_point[0] + 1,
            )

    def _found(self, pointer: str) -> _Place:
        """Where a pointer leads to a value that exists."""
        place = self._place(pointer)
        if place.value is None:
            raise self._failed(
                f"{shown(pointer)} does not exist",
                f"the {shown(place.key)} is not there; it has {self._names(place.container)}",
                None if place.container is None else place.container.start_point[0] + 1,
            )
        return place

    def _place(self, pointer: str) -> _Place:
        """Where a pointer leads; all of its parts but the last must exist."""
        place = _Place(None, None, self._root, "")
        parts = pointer.split("/")[1:]
        for part in parts:
            container = place.value
            if container is None or container.type not in ("object", "array"):
                what = "nothing" if container is None else f"a {container.type}"
                raise self._failed(
                    f"{shown(pointer)} does not exist: there is {what} at {shown(place.key)}",
                    "send a pointer to a member of an object or an array",
                    None if container is None else container.start_point[0] + 1,
                )
            key = part.replace("~1", "/").replace("~0", "~")
            place = self._child(container, key, pointer)
        return place

    def _child(self, container: Node, key: str, pointer: str) -> _Place:
        if container.type == "array":
            items = _items(container)
            if key == "-" or (_INDEX.fullmatch(key) and int(key) == len(items)):
                return _Place(container, None, None, key)
            if not _INDEX.fullmatch(key) or int(key) > len(items):
                raise self._failed(
                    f"{shown(pointer)} does not exist: the array has {len(items)} elements",
                    "its elements count from 0; `-` is the place after the last one",
                    container.start_point[0] + 1,
                )
            item = items[int(key)]
            return _Place(container, item, item, key)
        pairs = [pair for pair in _items(container) if self._key_of(pair) == key]
        if len(pairs) > 1:
            raise self._failed(
                f"the object has the key {shown(key)} {len(pairs)} times",
                "name the lines instead, by old and new strings",
                pairs[-1].start_point[0] + 1,
            )
        if not pairs:
            return _Place(container, None, None, key)
        return _Place(container, pairs[0], pairs[0].child_by_field_name("value"), key)

    def _added(self, pointer: str, value: Any) -> str:
        place = self._place(pointer)
        container = place.container
        if container is None or (container.type == "object" and place.value is not None):
            assert place.value is not None, "the root is a value"
            return self._replaced(place.value, value)
        items = _items(container)
        head = f"{json.dumps(place.key, ensure_ascii=False)}: " * (container.type == "object")
        at = items.index(place.child) if place.child is not None else len(items)
        if not items:
            return self._filled(container, head, value)
        neighbour = items[min(at, len(items) - 1)]
        is_spread = self._is_spread(container)
        indent = self._indent_at(neighbour) if is_spread else ""
        beside = neighbour.child_by_field_name("value") or neighbour
        new = head + self._written(value, indent, is_spread=is_spread, beside=beside)
        gap = "\n" + indent if is_spread else " "
        if at < len(items):
            return self._spliced(neighbour.start_byte, neighbour.start_byte, f"{new},{gap}")
        return self._spliced(neighbour.end_byte, neighbour.end_byte, f",{gap}{new}")

    def _filled(self, container: Node, head: str, value: Any) -> str:
        """An empty container with its first member."""
        outer, is_spread = self._indent_at(container), self._is_spread(self._root)
        inner = outer + self._unit() if is_spread else ""
        new = head + self._written(value, inner, is_spread=is_spread)
        body = f"\n{inner}{new}\n{outer}" if is_spread else new
        return self._spliced(container.start_byte + 1, container.end_byte - 1, body)

    def _replaced(self, node: Node, value: Any) -> str:
        is_spread = self._is_spread(self._root) and not self._is_within_line(node)
        new = self._written(value, self._indent_at(node), is_spread=is_spread)
        return self._spliced(node.start_byte, node.end_byte, new)

    def _without(self, place: _Place) -> str:
        container, child = place.container, place.child
        if container is None or child is None:
            raise self._failed("the whole document cannot be removed", "replace it", 1)
        items = _items(container)
        at = items.index(child)
        if len(items) == 1:
            return self._spliced(container.start_byte + 1, container.end_byte - 1, "")
        if at + 1 < len(items):
            return self._spliced(child.start_byte, items[at + 1].start_byte, "")
        return self._spliced(items[at - 1].end_byte, child.end_byte, "")

    def _spliced(self, start: int, end: int, text: str) -> str:
        check_size(len(self._bytes) + len(text))
        return (self._bytes[:start] + text.encode() + self._bytes[end:]).decode()

    def _written(
        self, value: Any, indent: str, *, is_spread: bool, beside: Node | None = None
    ) -> str:
        """A value as text that begins in a line with this indentation, written as one beside it."""
        if isinstance(value, _Lifted):
            return _indented(value.text, indent, old_indent=value.indent)
        if (
            isinstance(value, dict | list)
            and beside is not None
            and beside.type == _TYPES[type(value)]
        ):
            is_spread = is_spread and (self._is_spread(beside) or not _items(beside))
        if not is_spread:
            text = json.dumps(value, ensure_ascii=False)
            is_padded = beside is not None and self._bytes[beside.start_byte :].startswith(b"{ ")
            return (
                f"{{ {text[1:-1]} }}" if is_padded and isinstance(value, dict) and value else text
            )
        # Strings have no tab of their own: JSON escapes it.
        text = json.dumps(value, ensure_ascii=False, indent="\t")
        unit = self._unit()
        check_size(len(text) + text.count("\t") * len(unit))
        return _indented(text.replace("\t", unit), indent)

    def _is_spread(self, container: Node) -> bool:
        """Whether the members of a container stand on lines of their own."""
        items = _items(container)
        first = items[0] if items else None
        return first is not None and first.start_point[0] > container.start_point[0]

    def _is_within_line(self, node: Node) -> bool:
        """Whether a value stands in a container that is written in one line."""
        parent = node.parent
        while parent is not None and parent.type not in ("object", "array"):
            parent = parent.parent
        return parent is not None and not self._is_spread(parent)

    def _indent_at(self, node: Node) -> str:
        """The white space before the line on which a value begins."""
        start = self._bytes.rfind(b"\n", 0, node.start_byte) + 1
        line = self._bytes[start : node.start_byte]
        return line[: len(line) - len(line.lstrip())].decode()

    def _unit(self) -> str:
        """The step by which the file is indented."""
        items = _items(self._root)
        return (self._indent_at(items[0]) if self._is_spread(self._root) else "") or USUAL_UNIT

    def _lifted(self, node: Node) -> _Lifted:
        """The text of a value that goes elsewhere."""
        text = self._bytes[node.start_byte : node.end_byte].decode()
        return _Lifted(text, self._indent_at(node))

    def _value_of(self, node: Node) -> Any:
        try:
            return json.loads(self._bytes[node.start_byte : node.end_byte])
        except (ValueError, RecursionError) as error:
            raise self._failed(
                f"the value on line {node.start_point[0] + 1} cannot be read: {error}",
                "name the lines instead, by old and new strings",
                node.start_point[0] + 1,
            ) from error

    def _key_of(self, pair: Node) -> str:
        key = pair.child_by_field_name("key")
        assert key is not None, "a pair has a key"
        return str(self._value_of(key))

    def _names(self, container: Node | None) -> str:
        if container is None:
            return "nothing"
        if container.type == "array":
            return f"{len(_items(container))} elements"
        names = [shown(self._key_of(pair))[1:-1] for pair in _items(container)[:8]]
        return ", ".join(names) or "no members"

    def _failed(self, message: str, hint: str, line: int | None) -> FormError:
        what = f"operation {self._number} ({self._operation.op})"
        return refused("json_patch_failed", f"{what}: {message}", hint, line)


def _items(container: Node) -> list[Node]:
    """The members of an object, as pairs, or the elements of an array."""
    wanted = {"pair"} if container.type == "object" else _VALUE_TYPES
    return [node for node in container.named_children if node.type in wanted]


def _indented(text: str, indent: str, *, old_indent: str = "") -> str:
    """A text with another indentation of all its lines but the first."""
    check_size(len(text) + text.count("\n") * len(indent))
    return text.replace("\n" + old_indent, "\n" + indent)


def _canonical(value: Any) -> str:
    """Equal for values that are equal in JSON; true is not 1, and 1.0 is."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, list):
        return "[" + ",".join(map(_canonical, value)) + "]"
    if isinstance(value, dict):
        members = sorted((json.dumps(key), _canonical(item)) for key, item in value.items())
        return "{" + ",".join(f"{key}:{item}" for key, item in members) + "}"
    return json.dumps(value)
