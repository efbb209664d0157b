"""Finds definitions by header line and indentation, well enough to write snippets.

Tells the header, the body and the closing line of each, and which lines are whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
_MAX_HEADER_LINES = 8
_OPENERS = (":", "{")
_CONTINUING = re.compile(r"[)\]}]|(?:else|elif|except|finally|catch|case|default|end)\b")
# What belongs to the line below it.
_LEADING = ("@", "#[", "/**", "///")
_OF_MEMBERS = re.compile(r"\b(?:class|struct|enum|trait|impl|interface|mod)\b")


def header_name(line: str) -> str | None:
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
        if header_name(lines[header]) is None:
            continue
        last = _end_of_block(lines, header, language)
        if last is not None and last >= end:
            yield header, last


def indent_of(line: str) -> str:
    """The white space at the beginning of a line."""
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


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """A definition in lines: `header:body_start`, its body up to `body_end`, a closing line."""

    header: int
    body_start: int
    body_end: int
    end: int

    def has_closing(self) -> bool:
        """True if a line of its own ends the definition."""
        return self.body_end < self.end


def blocks_around(lines: Sequence[str], start: int, end: int, language: str) -> Iterator[CodeBlock]:
    """The definitions that hold lines `start:end`, from the inside out.

    Definitions whose header cannot be told from their body are left out.
    """
    for header, block_end in definitions_around(lines, start, end, language):
        limit = min(header + _MAX_HEADER_LINES, block_end)
        openers = (at for at in range(header, limit) if lines[at].rstrip().endswith(_OPENERS))
        last = next(openers, None)
        if last is not None:
            has_closing = lines[block_end - 1].lstrip().startswith("}")
            yield CodeBlock(header, last + 1, block_end - has_closing, block_end)


def holds_members(header: str) -> bool:
    """True if the line is the header of a class or the like, not of a function."""
    return bool(_OF_MEMBERS.search(header))


def depth_of(lines: Sequence[str]) -> int:
    """The indentation of the least indented line; blank lines do not count."""
    return min((len(indent_of(line)) for line in lines if line.strip()), default=0)


def is_whole(lines: Sequence[str]) -> bool:
    """True if these lines consist of whole definitions or statements."""
    filled = [line for line in lines if line.strip()]
    return (
        bool(filled)
        and len(indent_of(filled[0])) == depth_of(filled)
        and not _CONTINUING.match(filled[0].lstrip())
        and not filled[-1].rstrip().endswith((*_OPENERS, "(", "["))
        and not filled[-1].lstrip().startswith(_LEADING)
        and sum(map(_balance, filled)) == 0
    )


def has_definition(lines: Sequence[str]) -> bool:
    """True if one of the outermost lines defines something."""
    depth = depth_of(lines)
    return any(header_name(line) and len(indent_of(line)) == depth for line in lines)


def _balance(line: str) -> int:
    return sum(map(line.count, "([{")) - sum(map(line.count, ")]}"))
