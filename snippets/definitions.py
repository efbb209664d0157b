"""Definitions found by their header line and indentation: enough to write snippets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_HEADER = re.compile(
    r"""^\s*
    (?:export\s+|default\s+|public\s+|private\s+|protected\s+|static\s+|pub(?:\([a-z]+\))?\s+
       |async\s+|unsafe\s+|const\s+|abstract\s+)*
    (?:def|class|function\*?|fn|struct|enum|trait|impl|interface|type|mod)\s+
    (?P<name>[A-Za-z_$][\w$]*)""",
    re.VERBOSE,
)
_METHOD = re.compile(r"^\s+(?:static |async |get |set )*(?P<name>[A-Za-z_$][\w$]*)\([^;]*\{\s*$")
_STATEMENTS = frozenset(
    ("if", "for", "while", "switch", "catch", "return", "else", "with", "function", "do", "try")
)


def definition_name(line: str) -> str | None:
    """The name that a header line defines, or None."""
    found = _HEADER.match(line) or _METHOD.match(line)
    if found is None or found["name"] in _STATEMENTS:
        return None
    return found["name"]


def definition_around(
    lines: Sequence[str], start: int, end: int, language: str
) -> tuple[int, int] | None:
    """The innermost definition that holds lines `start:end`, as (first line, end), or None.

    The header of the definition may be the line `start` itself.
    """
    return next(definitions_around(lines, start, end, language), None)


def definitions_around(
    lines: Sequence[str], start: int, end: int, language: str
) -> Iterator[tuple[int, int]]:
    """The definitions that hold lines `start:end`, as `definition_around`, from the inside out."""
    for header in range(min(start, len(lines) - 1), -1, -1):
        if definition_name(lines[header]) is None:
            continue
        last = _end_of_block(lines, header, language)
        if last is not None and last >= end:
            yield header, last


def indent_of(line: str) -> str:
    """The white space that a line begins with."""
    return line[: len(line) - len(line.lstrip())]


def _depth(line: str) -> int:
    return len(indent_of(line))


def _end_of_block(lines: Sequence[str], header: int, language: str) -> int | None:
    depth = _depth(lines[header])
    end = header + 1
    for number in range(header + 1, len(lines)):
        line = lines[number]
        if not line.strip():
            continue
        if _depth(line) > depth:
            end = number + 1
            continue
        if line.lstrip().startswith((")", "]")) and _depth(line) == depth:
            end = number + 1
            continue
        if language == "python":
            return end if end > header + 1 else None
        is_closing = _depth(line) == depth and line.lstrip().startswith("}")
        return number + 1 if is_closing else None
    return end if language == "python" and end > header + 1 else None
