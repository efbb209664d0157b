"""Finds lines that are alternatives: they stand in different branches of one condition."""

from __future__ import annotations

import re
from collections.abc import Sequence

from apply_service.edit.text.line_index import indent_of

# Languages whose lines a preprocessor chooses.
PREPROCESSED = frozenset({"c", "cpp", "csharp", "swift"})
_DIRECTIVE = re.compile(r"\s*#\s*(?P<word>if|ifdef|ifndef|elif|elseif|else|endif)\b")
# What begins another branch of the condition above.
_OTHER_BRANCH = re.compile(
    r"\s*(?:\}\s*)?(?:else|elif|elsif|elseif|except|catch|finally|case|default|when)\b"
)


def are_alternatives(lines: Sequence[str], first: int, second: int, language: str) -> bool:
    """True if line `second`, from 0, stands in a later branch of a condition around `first`."""
    if language in PREPROCESSED:
        branches = dict(_branches(lines, first))
        return any(
            condition in branches and branches[condition] != branch
            for condition, branch in _branches(lines, second)
        )
    opener = _opener(lines, second)
    return opener is not None and opener > first and _OTHER_BRANCH.match(lines[opener]) is not None


def without_directives(lines: Sequence[str]) -> list[str]:
    """The lines, each replaced by an empty one if it begins or ends a branch."""
    return ["" if _DIRECTIVE.match(line) else line for line in lines]


def _branches(lines: Sequence[str], place: int) -> list[tuple[int, int]]:
    """The directives around a line: where each condition begins, and its branch."""
    around: list[tuple[int, int]] = []
    for number, line in enumerate(lines[:place]):
        match = _DIRECTIVE.match(line)
        if match is None:
            continue
        if match["word"].startswith("if"):
            around.append((number, number))
        elif around and match["word"] == "endif":
            around.pop()
        elif around:
            around[-1] = (around[-1][0], number)
    return around


def _opener(lines: Sequence[str], place: int) -> int | None:
    """The nearest filled line before `place` that is less indented."""
    depth = len(indent_of(lines[place]))
    for number in range(place - 1, -1, -1):
        if lines[number].strip() and len(indent_of(lines[number])) < depth:
            return number
    return None
