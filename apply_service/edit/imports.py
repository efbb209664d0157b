"""The names that a file's imports bring in, so that a dropped import is noticed by name."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

from apply_service.edit.syntax import SyntaxTree, parse

_NAME = r"[A-Za-z_$][\w$]*"
_C_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_HASH_COMMENT = re.compile(r"(?m)(?:^|\s)#(?![\w<{\[]).*$")
_QUOTED = re.compile(r"""["'`]([^"'`\n]+)["'`]""")
_IMPORT_CLAUSE = re.compile(
    r"\b(?:import|export)\s+(?:type\s+|typeof\s+)?(?P<names>[^;'\"]*?)\s*\bfrom\b"
    rf"|\bimport\s+(?:type\s+)?(?P<alias>{_NAME})\s*="
    r"|\b(?:const|let|var)\s+(?P<target>\{[^}]*\}|[^=\s{]+)\s*="
    r"|\bimport\s*(?P<module>[\"'][^\"']+[\"'])"
    r"|(?<![=.\w]\s)(?<![=.\w])\brequire\s*\(\s*(?P<required>[\"'][^\"']+[\"'])"
)


def import_names(
    lines: Sequence[str], language: str | None, *, tree: SyntaxTree | None = None
) -> frozenset[str]:
    """Names that imports bind, as the file's code says them; modules where no name is bound.

    A wildcard counts by its module ("java.util.*"). `tree` saves parsing the lines again.
    Without a grammar for `language` nothing is known: the set is empty.
    """
    tree = tree or parse(lines, language)
    if tree is None:
        return frozenset()
    read = _READERS.get(tree.language)
    if read is None:
        return frozenset()
    names: set[str] = set()
    for start, end in tree.imports:
        names.update(read("\n".join(lines[start:end])))
    return frozenset(name for name in names if name)


def _python_names(text: str) -> Iterator[str]:
    lines = text.split("\n")
    margin = len(lines[0]) - len(lines[0].lstrip())
    try:
        module = ast.parse("\n".join(line[margin:] for line in lines))
    except (SyntaxError, ValueError, RecursionError):
        yield from re.findall(rf"(?<!\w){_NAME}", text.rpartition("import")[2])
        return
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.asname or alias.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom):
            origin = "." * node.level + (node.module or "")
            for alias in node.names:
                yield f"{origin}.*" if alias.name == "*" else alias.asname or alias.name


def _ecmascript_names(text: str) -> Iterator[str]:
    for match in _IMPORT_CLAUSE.finditer(_C_COMMENT.sub("", text)):
        if match["module"] or match["required"]:
            yield (match["module"] or match["required"]).strip("\"'")
        elif match["alias"]:
            yield match["alias"]
        elif match["target"]:
            yield from _bound_names(match["target"], separator=":")
        else:
            yield from _bound_names(match["names"], separator=" as ")


def _bound_names(clause: str, *, separator: str) -> Iterator[str]:
    """`Default, { a, b as c }, * as all` → Default, a, c, all."""
    for part in re.split(r"[{},]", clause):
        bound = part.rpartition(separator)[2].partition("=")[0].strip()
        yield bound.removeprefix("type ").removeprefix("...").strip(" *")


def _go_names(text: str) -> Iterator[str]:
    """The name of a package is its alias or, by custom, the last part of its path."""
    for match in re.finditer(rf'(?:({_NAME}|\.)\s+)?["`]([^"`]+)["`]', _C_COMMENT.sub("", text)):
        alias, path = match[1], match[2]
        if alias in (None, "import"):
            parts = [part for part in path.split("/") if not re.fullmatch(r"v\d+", part)]
            yield (parts or [path])[-1]
        else:
            yield path if alias in ("_", ".") else alias


def _rust_names(text: str) -> Iterator[str]:
    for statement in _C_COMMENT.sub("", text).split(";"):
        yield from _tree_names(statement, separator="::", wildcard="*")


def _scala_names(text: str) -> Iterator[str]:
    for statement in _C_COMMENT.sub("", text).replace("=>", " as ").split("\n"):
        yield from _tree_names(statement, separator=".", wildcard="_")


def _tree_names(statement: str, *, separator: str, wildcard: str) -> Iterator[str]:
    """`use a::{b, c as d, e::*};` → b, d, e::*; `self` is called as the path before it."""
    path = re.sub(
        r"^\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))?\s+)?(?:use|import|extern\s+crate)\s",
        "",
        statement.strip(),
    )
    before = ""
    around: list[str] = []  # the paths before the open braces
    for part in re.findall(r"[{}]|[^{},]+", path):
        written = part.strip()
        if written == "}":
            del around[-1:]
        elif written == "{":
            around.append(before)
        elif written.endswith(separator):
            before = written.removesuffix(separator)
        elif written:
            full, _, alias = written.partition(" as ")
            parts = [*around[-1:], *full.strip().split(separator)]
            if parts[-1] in (wildcard, "*"):
                yield separator.join(parts)
            else:
                yield alias.strip() or parts[-2 if parts[-1] == "self" else -1].split(separator)[-1]


def _jvm_names(text: str) -> Iterator[str]:
    """Java and Kotlin: the last part of the path or its alias; a wildcard by its package."""
    pattern = rf"\bimport\s+(?:static\s+)?([\w$.]+?(?:\.\*)?)(?:\s+as\s+({_NAME}))?\s*(?:;|$)"
    for match in re.finditer(pattern, _C_COMMENT.sub("", text), re.MULTILINE):
        path = match[1]
        yield match[2] or (path if path.endswith("*") else path.rpartition(".")[2])


def _c_names(text: str) -> Iterator[str]:
    for match in re.finditer(r'#\s*include\s*([<"][^>"\n]+[>"])|\busing\s+([^;]+);', text):
        yield (match[1] or match[2]).strip()


def _csharp_names(text: str) -> Iterator[str]:
    pattern = r"\busing\s+(?:static\s+)?(?:([\w]+)\s*=\s*)?([\w.<>, ]+);"
    for match in re.finditer(pattern, _C_COMMENT.sub("", text)):
        yield match[1] or match[2].strip()


def _php_names(text: str) -> Iterator[str]:
    yield from _quoted_names("\n".join(re.findall(r"(?:require|include)\w*[^;]*;", text)))
    for statement in re.findall(r"\buse\s+(?:function\s+|const\s+)?([^;]+);", text):
        for part in re.split(r"[{},]", _C_COMMENT.sub("", statement)):
            full, _, alias = part.strip().partition(" as ")
            if full and not full.endswith("\\"):
                yield alias.strip() or full.rpartition("\\")[2].strip()


def _quoted_names(text: str) -> Iterator[str]:
    """Ruby, CSS: what stands in quotes."""
    for match in _QUOTED.finditer(text):
        yield match[1]


def _lua_names(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        target = re.match(rf"\s*(?:local\s+)?({_NAME})\s*=", line)
        if target:
            yield target[1]
        else:
            yield from _quoted_names(line)


def _swift_names(text: str) -> Iterator[str]:
    for match in re.finditer(r"\bimport\s+(?:\w+\s+)?([\w.]+)\s*$", text, re.MULTILINE):
        yield match[1]


def _bash_names(text: str) -> Iterator[str]:
    for match in re.finditer(r"(?m)^\s*(?:source|\.)\s+(\S+)", _HASH_COMMENT.sub("", text)):
        yield match[1].strip("\"'")


_READERS: Mapping[str, Callable[[str], Iterator[str]]] = MappingProxyType(
    {
        "python": _python_names,
        "javascript": _ecmascript_names,
        "typescript": _ecmascript_names,
        "tsx": _ecmascript_names,
        "go": _go_names,
        "rust": _rust_names,
        "java": _jvm_names,
        "kotlin": _jvm_names,
        "scala": _scala_names,
        "c": _c_names,
        "cpp": _c_names,
        "csharp": _csharp_names,
        "php": _php_names,
        "ruby": _quoted_names,
        "css": _quoted_names,
        "lua": _lua_names,
        "swift": _swift_names,
        "bash": _bash_names,
    }
)
