"""What of a definition is its header, its body and its closing line; and which lines are whole."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from snippets.definitions import (
    definition_name,
    definitions_around,
    indent_of,
)

_MAX_HEADER_LINES = 8
_OPENERS = (":", "{")
_CONTINUING = re.compile(r"[)\]}]|(?:else|elif|except|finally|catch|case|default|end)\b")
# What belongs to the line below it.
_LEADING = ("@", "#[", "/**", "///")
_OF_MEMBERS = re.compile(r"\b(?:class|struct|enum|trait|impl|interface|mod)\b")


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """A definition in lines: `header:body_start`, its body up to `body_end`, a closing line."""

    header: int
    body_start: int
    body_end: int
    end: int

    def has_closing(self) -> bool:
        """Whether a line of its own ends the definition."""
        return self.body_end < self.end


def blocks_around(lines: Sequence[str], start: int, end: int, language: str) -> Iterator[CodeBlock]:
    """The definitions that hold lines `start:end`, from the inside out.

    Those of which the header cannot be told from the body are left out.
    """
    for header, block_end in definitions_around(lines, start, end, language):
        limit = min(header + _MAX_HEADER_LINES, block_end)
        openers = (at for at in range(header, limit) if lines[at].rstrip().endswith(_OPENERS))
        last = next(openers, None)
        if last is not None:
            has_closing = lines[block_end - 1].lstrip().startswith("}")
            yield CodeBlock(header, last + 1, block_end - has_closing, block_end)


def holds_members(header: str) -> bool:
    """Whether this is the header of a class or the like, not of a function."""
    return bool(_OF_MEMBERS.search(header))


def depth_of(lines: Sequence[str]) -> int:
    """How far the line with the least indentation is indented; blank lines are not."""
    return min((len(indent_of(line)) for line in lines if line.strip()), default=0)


def is_whole(lines: Sequence[str]) -> bool:
    """Whether these lines are definitions or statements from their first line to their last."""
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
    """Whether one of the outermost lines defines something."""
    depth = depth_of(lines)
    return any(definition_name(line) and len(indent_of(line)) == depth for line in lines)


def _balance(line: str) -> int:
    return sum(map(line.count, "([{")) - sum(map(line.count, ")]}"))
