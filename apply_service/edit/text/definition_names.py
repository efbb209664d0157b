"""Names that lines define, judged by single lines: no grammar, any language."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from apply_service.edit.text.words import IDENTIFIER, IDENTIFIER_PATTERN

MAX_LINE_LENGTH = 400
# Lines whose names are remembered: those of one request are asked about again and again.
MAX_REMEMBERED = 4096

_MODIFIERS = (
    r"(?:(?:export|default|declare|public|private|protected|internal|static|async|abstract|final|"
    r"override|virtual|inline|extern|unsafe|const|open|sealed|suspend|pub(?:\([\w:]{1,40}\))?|"
    r"partial|local|data|inner|companion|fileprivate|mutating|lazy|implicit|case)\s+)*"
)
_KEYWORD = re.compile(
    rf"\s*{_MODIFIERS}(?:def|class|function\*?|func|fn|interface|struct|enum|trait|impl|module|"
    r"namespace|object|fun|record|union|protocol|extension|type|macro_rules!|sub|proc|"
    r"CREATE\s+(?:OR\s+REPLACE\s+)?(?:TABLE|VIEW|FUNCTION|PROCEDURE|TRIGGER|INDEX))\s+"
    r"(?:\([^()]{0,80}\)\s*)?(?:self\.)?"
    rf"(?P<name>{IDENTIFIER_PATTERN}(?:[.:]{IDENTIFIER_PATTERN})*)"
)
_BOUND_FUNCTION = re.compile(
    rf"\s*{_MODIFIERS}(?:(?:const|let|var|val)\s+)?(?P<name>[A-Za-z_$][\w$.]*)\s*(?:=|:)\s*"
    r"(?:async\s+)?(?:function\b|fn\b|lambda\b|\([^()]{0,200}\)\s*(?::[^=]{0,80})?=>|\w+\s*=>)"
)
_CALL_LIKE = re.compile(
    r"\s*(?:[\w$<>\[\],.*&?:@]+\s+){0,6}[*&~]?"
    rf"(?P<name>{IDENTIFIER_PATTERN})\s*"
    r"\([^;{}]{0,200}\)[^;(){}=]{0,80}\{\s*"
)
_SHELL_FUNCTION = re.compile(r"\s*(?P<name>[\w-]+)\s*+\(\)\s*+\{?\s*+")
_NOT_NAMES = frozenset(
    {"if", "for", "while", "switch", "catch", "with", "return", "match", "else", "elif", "do"}
    | {"try", "when", "unless", "until", "and", "or", "not", "synchronized", "lock", "using"}
    | {"foreach", "case", "function"}
)
# Names that a line binds without being a definition: `NAME = …`, `"name": …`, an import.
_BOUND_NAME = re.compile(
    r"\s*(?:export\s+|const\s+|let\s+|var\s+|val\s+|static\s+|local\s+|pub\s+)*"
    r"[\"']?@?(?P<name>[\w$.-]+(?:/[\w$.-]+)?)[\"']?\s*(?::=?|[-+*/%|&^]?=)(?!=)"
)
_QUALIFIER = re.compile(r"[.:]+")
_IMPORT = re.compile(r"\s*(?:import|from|use|using|require|#\s*include|@import)\b")


def definition_name(line: str) -> str | None:
    """The unqualified name of the definition that `line` begins, or None."""
    if len(line) > MAX_LINE_LENGTH:
        return None
    return _definition_name(line)


@lru_cache(MAX_REMEMBERED)
def _definition_name(line: str) -> str | None:
    if not line.strip():
        return None
    match = _KEYWORD.match(line) or _BOUND_FUNCTION.match(line)
    if match is None:
        match = _SHELL_FUNCTION.fullmatch(line) or _CALL_LIKE.fullmatch(line)
    if match is None:
        return None
    name = unqualified(match["name"])
    return None if name in _NOT_NAMES else name


def unqualified(name: str) -> str:
    """The last part of a name, as other lines use it: `run` of `Server.run` and `A::run`."""
    return _QUALIFIER.split(name)[-1]


def is_attribute(line: str) -> bool:
    """True if `line` is like `@property`, `#[test]` or `[Fact]`: it belongs to the next line."""
    return line.lstrip().startswith(("@", "#[", "["))


def definition_names(lines: Iterable[str]) -> set[str]:
    """All names that the lines define."""
    return {name for line in lines if (name := definition_name(line)) is not None}


def bound_name(line: str) -> str | None:
    """The name that `line` defines or assigns, or None."""
    name = definition_name(line)
    if name is not None:
        return name
    match = _BOUND_NAME.match(line[:200])
    words = IDENTIFIER.findall(match["name"]) if match is not None else []
    return words[-1] if words else None


def known_names(lines: Iterable[str]) -> set[str]:
    """All names that the lines define, assign or import."""
    names: set[str] = set()
    for line in lines:
        name = bound_name(line)
        if name is not None:
            names.add(name)
        elif _IMPORT.match(line):
            names.update(IDENTIFIER.findall(line[:MAX_LINE_LENGTH]))
    return names
