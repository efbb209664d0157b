"""Where a small edit can go: the blocks of a file, from its syntax tree.

A block is a function, class, enum, switch, list and so on, whose header, items and closing line
have lines of their own. Rows are counted from 0, and ranges are half-open.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tree_sitter import Language, Node, Parser, Tree

from training.generated.small_edits.code import Function, Parameter, table


@dataclass(frozen=True, slots=True)
class Grammar:
    """How a language's tree names the blocks: type of node to kind of block."""

    module: str
    function: str
    comment: str
    imports: frozenset[str]
    blocks: dict[str, str]


def _grammar(entry: dict[str, Any]) -> Grammar:
    return Grammar(
        entry["module"],
        entry.get("function", "language"),
        entry["comment"],
        frozenset(entry.get("imports", ())),
        {node: kind for kind, nodes in entry["blocks"].items() for node in nodes},
    )


GRAMMARS = {language: _grammar(entry) for language, entry in table("grammars").items()}
SUFFIXES = {
    ".py": "python",
    ".js": "javascript",
    ".mjs": "javascript",
    ".jsx": "javascript",
    ".ts": "typescript",
    ".tsx": "tsx",
    ".java": "java",
    ".kt": "kotlin",
    ".go": "go",
    ".rs": "rust",
    ".c": "c",
    ".h": "c",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".hpp": "cpp",
    ".cs": "csharp",
    ".rb": "ruby",
    ".php": "php",
    ".swift": "swift",
    ".lua": "lua",
    ".sh": "shell",
    ".bash": "shell",
    ".json": "json",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".toml": "toml",
}
DATA = frozenset(("json", "yaml", "toml"))
# Node types that stand between a block and its items.
_BODIES = frozenset(
    [
        "block",
        "class_body",
        "enum_class_body",
        "enum_body",
        "function_body",
        "statement_block",
        "switch_body",
        "switch_block",
        "match_block",
        "compound_statement",
        "declaration_list",
        "field_declaration_list",
        "enum_variant_list",
        "enumerator_list",
        "enum_member_declaration_list",
        "body_statement",
        "interface_body",
        "object_type",
        "literal_value",
        "import_spec_list",
        "statements",
        "statement_list",
        "constructor_body",
        "block_mapping",
        "block_sequence",
        "block_node",
        "initializer_list",
        "protocol_body",
    ]
)
_SWITCHES = frozenset(("case", "case_statement", "switch_statement", "when_expression"))
# Languages whose blocks need no brackets.
_UNBRACED = frozenset(("python", "ruby", "lua", "shell", "yaml", "toml"))
_PARAMETERS = frozenset(
    [
        "parameters",
        "formal_parameters",
        "parameter_list",
        "function_value_parameters",
        "method_parameters",
    ]
)
_COMMENTS = frozenset(("comment", "line_comment", "block_comment", "multiline_comment"))
_OPENERS, _CLOSERS = ("{", "[", "("), ("}", "]", ")", "end", "esac")


@dataclass(frozen=True, slots=True)
class Item:
    """A statement, member or entry of a block: rows `[start, end)`."""

    start: int
    end: int
    type: str
    node: Node


@dataclass(slots=True)
class Block:
    """A block of a file: header `[start, body)`, items within `[body, end)`, closer `[end, stop)`.

    `name_row` is the row that a reader knows the block by.
    """

    kind: str
    node: Node
    start: int
    body: int
    end: int
    stop: int
    name_row: int
    parent: Block | None
    items: list[Item] = field(default_factory=list)

    @property
    def chain(self) -> list[Block]:
        """The blocks around this one, outermost first, and itself."""
        return [*(self.parent.chain if self.parent else ()), self]


@cache
def _parser(language: str) -> Parser:
    grammar = GRAMMARS[language]
    module = importlib.import_module(grammar.module)
    return Parser(Language(getattr(module, grammar.function)()))


def parse(text: str, language: str) -> Tree:
    """The syntax tree of a file."""
    return _parser(language).parse(text.encode())


def num_errors(tree: Tree) -> int:
    """How many nodes of a tree are errors or were made up by the parser."""
    if not tree.root_node.has_error:
        return 0
    waiting, found = [tree.root_node], 0
    while waiting:
        node = waiting.pop()
        found += node.is_error or node.is_missing
        waiting += [child for child in node.children if child.has_error or child.is_missing]
    return found


def find_blocks(tree: Tree, lines: list[str], language: str) -> list[Block]:
    """All blocks whose lines are their own and that lie directly in one another."""
    found: list[Block] = []
    waiting: list[tuple[Node, Block | None]] = [(tree.root_node, None)]
    while waiting:
        node, parent = waiting.pop()
        kind = GRAMMARS[language].blocks.get(node.type)
        inside = parent
        if kind == "chain":
            kind = None if node.has_error else kind
        if kind and node.end_point.row > node.start_point.row and not node.has_error:
            block = _block(node, kind, parent, lines, language)
            if block is None:
                # What lies in a block that cannot be shown as one has no header to be found by.
                continue
            if kind != "chain":
                inside = block
            found.append(block)
        waiting += [(child, inside) for child in node.named_children]
    return sorted(found, key=lambda block: (block.start, -block.stop))


def rows_of(node: Node) -> tuple[int, int]:
    """The rows that a node is on."""
    end = node.end_point
    return node.start_point.row, end.row + (end.column > 0)


def indent_of(line: str) -> str:
    """The white space that a line begins with."""
    return line[: len(line) - len(line.lstrip())]


def _block(
    node: Node, kind: str, parent: Block | None, lines: list[str], language: str
) -> Block | None:
    start, stop = rows_of(node)
    body = _body_of(node, language)
    if kind == "chain":
        block = Block(kind, node, start, start + 1, stop - 1, stop, start, parent)
        return block if _lies_in(block, parent, lines) and lines[start].strip() else None
    if body is None:
        return None
    outer = node.parent
    if outer is not None and outer.type in ("decorated_definition", "export_statement"):
        start = outer.start_point.row
    name = node.child_by_field_name("name") or node
    name_row = max(name.start_point.row, start)
    first_row, end = _extent(node, body, lines, language)
    if first_row >= end:
        return None
    closer = lines[end].strip() if end < min(stop, len(lines)) else ""
    has_closer = bool(closer) and end < stop
    if has_closer and (not closer.startswith(_CLOSERS) or stop != end + 1):
        return None
    block = Block(kind, node, start, first_row, end, end + has_closer, name_row, parent)
    block.items = _items(node if body is node else body, first_row, end)
    if not block.items or block.items[0].start < first_row or not _lies_in(block, parent, lines):
        return None
    return block if _is_framed(block, lines, language) else None


def _is_framed(block: Block, lines: list[str], language: str) -> bool:
    """Whether the block's header and end look like those of a block."""
    header = lines[block.body - 1].rstrip()
    has_closer = block.stop > block.end
    is_bracketed = has_closer and lines[block.end].strip().startswith(("}", "]", ")"))
    if language not in _UNBRACED or is_bracketed:
        is_function = block.kind == "function"
        return has_closer and header.endswith(("{",) if is_function else _OPENERS)
    # A comment behind the last statement is in the block for a reader, but not for the tree.
    behind = next((line for line in lines[block.stop :] if line.strip()), "")
    return has_closer or len(indent_of(behind)) <= len(indent_of(lines[block.start]))


def _lies_in(block: Block, parent: Block | None, lines: list[str]) -> bool:
    """Whether the block is indented like the others of its parent, at the margin if it has none."""
    indent = indent_of(lines[block.start])
    if parent is None:
        return not indent
    first = next((line for line in lines[parent.body : parent.end] if line.strip()), "")
    return indent == indent_of(first) and parent.body <= block.start and block.stop <= parent.end


def _body_of(node: Node, language: str) -> Node | None:
    if language in DATA and node.type not in ("block_mapping_pair", "block_sequence_item"):
        return node
    body = node.child_by_field_name("body")
    if body is None and node.type in ("block_mapping_pair",):
        body = node.child_by_field_name("value")
        return body if body is not None and body.type == "block_node" else None
    if body is None:
        inner = [child for child in node.named_children if child.type in _BODIES]
        body = inner[-1] if inner else None
    if body is None and node.type == "type_declaration":
        structs = [
            part
            for spec in node.named_children
            for part in spec.named_children
            if part.type == "struct_type"
        ]
        body = (
            structs[0].named_children[0]
            if len(structs) == 1 and structs[0].named_children
            else None
        )
    return body if body is not None else node


def _extent(node: Node, body: Node, lines: list[str], language: str) -> tuple[int, int]:
    """Where the items of a block begin and end."""
    first, last = node.start_point.row, node.end_point.row
    opener = next(
        (
            one
            for one in body.children
            if one.type in _OPENERS and lines[one.start_point.row].rstrip().endswith(one.type)
        ),
        None,
    )
    if opener is not None and (body is not node or opener == body.children[0]):
        return opener.end_point.row + 1, body.end_point.row
    if node.type == "table":
        return first + 1, max(rows_of(child)[1] for child in node.named_children)
    if node.type in _SWITCHES:
        return rows_of(node.named_children[0])[1], last
    heads = [
        child
        for child in node.children
        if child.end_byte <= body.start_byte and child.type not in _COMMENTS
    ]
    openers = [child for child in node.children if child.type in (*_OPENERS, "in")]
    if language in ("lua", "ruby", "shell", "go", "swift", "kotlin") or body is node:
        return max((one.end_point.row for one in openers[-1:] or heads), default=first) + 1, last
    return max(child.end_point.row for child in heads) + 1, rows_of(body)[1]


def _items(body: Node, first: int, end: int) -> list[Item]:
    """The items of a body; those that share a row are one."""
    children = body.named_children
    while len(children) == 1 and children[0].type in _BODIES:
        children = children[0].named_children
    found: list[Item] = []
    for child in children:
        start, stop = rows_of(child)
        if child.type in ("statements", "statement_list", "block_mapping", "block_sequence"):
            found += _items(child, first, end)
            continue
        if start < first:
            continue
        if found and start < found[-1].end:
            last = found[-1]
            found[-1] = Item(last.start, max(stop, last.end), last.type, last.node)
        else:
            found.append(Item(start, min(stop, end), child.type, child))
    return found


def is_comment(item: Item) -> bool:
    """Whether an item is a comment with rows of its own."""
    return item.type in _COMMENTS


def function_of(block: Block, lines: list[str], language: str) -> Function:
    """What new code may know of a function."""
    name = _name_of(block.node)
    text = "\n".join(lines[block.start : block.stop])
    own = "\n".join(lines[block.body : block.end])
    return Function(
        language=language,
        name=name,
        parameters=tuple(_parameters(block.node, language, own)),
        result=_result_of(block, lines, language),
        has_value=bool(re.search(r"\breturn +[^;\s]", own)),
        text=text,
        file_text="\n".join(lines),
    )


def _text(node: Node | None) -> str:
    return node.text.decode() if node is not None and node.text else ""


def _name_of(node: Node) -> str:
    name = node.child_by_field_name("name")
    declarator = node.child_by_field_name("declarator")
    while name is None and declarator is not None:
        if "identifier" in declarator.type and declarator.type != "qualified_identifier":
            return _text(declarator)
        name = declarator.child_by_field_name("name")
        declarator = declarator.child_by_field_name("declarator")
    if name is None and node.parent is not None:
        near = node.parent
        if near.type == "expression_list" and near.parent is not None:
            found = re.match(r"(?:local )?([\w.:]+)", _text(near.parent))
            return found[1] if found else ""
        name = (
            near.child_by_field_name("name")
            or near.child_by_field_name("key")
            or near.child_by_field_name("left")
            or near.child_by_field_name("property")
        )
    return _text(name).split("::")[-1].split("\n")[0]


def parameters_of(node: Node) -> Node | None:
    """The list of parameters of a function."""
    waiting = [child for child in node.children if child.type not in _BODIES]
    while waiting:
        child = waiting.pop(0)
        if child.type in _PARAMETERS and child != node.child_by_field_name("receiver"):
            return child
        if child.type.endswith("declarator"):
            waiting += child.children
    return None


_C_PARAMETER = re.compile(r"^(?:const +)?(.+?[\s*&]+)(\w+)(\[\])?(?:\s*=\s*(.+))?$", re.S)
_TYPED = re.compile(
    r"^(?:\w+ +)?(\w+)(\??)\s*:\s*([^=]+?)(?:\s*=\s*(.+))?$",
    re.S,
)
_PLAIN = re.compile(r"^(?:([\w\\|?]+) +)?\$?(\w+)(?:\s*=\s*(.+))?$", re.S)


def _parameters(node: Node, language: str, body: str) -> Iterator[Parameter]:
    if language == "shell":
        for name in re.findall(r'^\s*(?:local )?(\w+)="?\$\{?\d', body, re.M):
            yield Parameter(name, "")
        return
    around = parameters_of(node)
    children = (
        around.named_children
        if around is not None
        else [one for one in node.children if one.type == "parameter"]
    )
    for child in children:
        text = _text(child).strip()
        if (
            child.type in _COMMENTS
            or re.match(r"(?:self|cls|this|_)\b", text)
            or text.startswith(("&", "mut self", "*", "...", "{", "["))
        ):
            continue
        yield from _parameters_in(text, language)


def _parameters_in(text: str, language: str) -> Iterator[Parameter]:
    if language == "go":
        *names, last = [part.strip() for part in text.split(",")]
        name, _, kind = last.partition(" ")
        if kind:
            yield from (Parameter(one, kind.strip()) for one in (*names, name))
        return
    text = re.sub(r"^(?:@\w+(?:\([^)]*\))? +|final +|in +|this +)+", "", text)
    if language in ("c", "cpp", "java", "csharp"):
        found = _C_PARAMETER.match(text)
        if found:
            yield Parameter(
                found[2], (found[1].strip() + (found[3] or "")).replace("* ", "*"), found[4] or ""
            )
        return
    typed = _TYPED.match(text) if ":" in text and language not in ("ruby", "php", "lua") else None
    if typed:
        yield Parameter(typed[1], typed[3].strip(), typed[4] or ("undefined" if typed[2] else ""))
        return
    plain = _PLAIN.match(text.rstrip(":"))
    if plain and not text.startswith("&"):
        yield Parameter(plain[2], plain[1] or "", plain[3] or "")


def _result_of(block: Block, lines: list[str], language: str) -> str:
    """The type of a function's result as it is written."""
    node = block.node
    if language in ("kotlin", "swift"):
        header = " ".join(line.strip() for line in lines[block.start : block.body])
        found = re.search(
            r"\)\s*(?:async\s+|throws\s+)*"
            + (":" if language == "kotlin" else "->")
            + r"\s*(.+?)\s*\{?$",
            header,
        )
        return found[1] if found else ""
    result = ""
    for name in ("return_type", "result", "returns", "type"):
        child = node.child_by_field_name(name)
        if child is not None:
            result = _text(child).removeprefix(":").removeprefix("->").strip()
            break
    declarator = node.child_by_field_name("declarator")
    return (
        f"{result} *"
        if declarator is not None and declarator.type == "pointer_declarator"
        else result
    )
