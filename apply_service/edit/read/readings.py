"""Other ways to read an update whose form is bad: numbers, notes, loose ellipses, wrong steps.

A doubtful reading is no decision. Each one leads to candidates of its own, and a later score tells
which of them the file bears out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from apply_service.edit.read.marker_phrases import usual_marker
from apply_service.edit.read.markers import parse_marker
from apply_service.edit.read.original_index import OriginalIndex
from apply_service.edit.read.removal_notes import note_names
from apply_service.edit.text.line_index import indent_of, indent_unit

# "73<tab>", "  73 | ", "73: ", "L73: " and " 73→" in front of a line.
_NUMBERED = re.compile(r"\s*L?(\d{1,6})(\t|\s?[|:→]\s?| ++|$)(.*)")
# Spaces between a number and its line, at most.
MAX_NUMBER_GAP = 2
MIN_NUMBERED_SHARE = 0.6
# Longer lines are not searched for remarks.
MAX_NOTED_CHARS = 400
# Spaces for a tab in a file that is not indented.
USUAL_UNIT = "    "
_COMMENT = r"(?://|\#|--|/\*|<!--|\{/\*)"
_NOTE = re.compile(
    rf"\s*{_COMMENT}\s*+(?:(?:<-+|←|\^+)|\W*+(?:add|new\b|chang|updat|was\b|were\b|fix|modif|renam"
    r"|remov|now\b|replac|mov|insert|delet|edit)).*$",
    re.IGNORECASE,
)
_STAYS = (
    r"same|unchanged|as before|no changes?|rest of|stays?|remains?|as is|existing|others?"
    r"|untouched|like before|omitted"
)
_DOTS = r"(?:\.{3,}+|…)"
_STAYING = rf"\(?[\w ,]{{0,40}}\b(?:{_STAYS})\b[\w ,]{{0,40}}\)?"
_ELLIPSIS = re.compile(rf"\s*+{_DOTS}\s*+(?:{_STAYING})?\s*+{_DOTS}?\s*+[,;]?\s*+", re.IGNORECASE)
_REST = re.compile(rf"\s*{_COMMENT}.*\b(?:{_STAYS})\b.*$", re.IGNORECASE)


def readings_of(
    update_lines: Sequence[str], original: OriginalIndex, *, language: str | None
) -> list[list[str]]:
    """The update as it is, then each other way to read it, then all of them together.

    In a file that is indented by tabs alone the update is always read so.
    """
    if {indent_of(line)[:1] for line in original.lines} - {""} == {"\t"}:
        update_lines = with_file_tabs(update_lines, original)
    changes: tuple[Callable[[Sequence[str]], list[str]], ...] = (
        lambda lines: within_fences(lines, original, language=language),
        lambda lines: without_numbers(lines, original),
        lambda lines: without_notes(lines, original),
        lambda lines: with_markers(lines, original, language=language),
        lambda lines: with_file_tabs(lines, original),
        lambda lines: with_file_unit(lines, original),
    )
    readings = [list(update_lines)]
    together = list(update_lines)
    for change in changes:
        readings.append(change(update_lines))
        together = change(together)
    readings.append(together)
    return [reading for number, reading in enumerate(readings) if reading not in readings[:number]]


def without_numbers(lines: Sequence[str], original: OriginalIndex) -> list[str]:
    """The lines without the line numbers in front, if most have one and none is in the file."""
    found = [_NUMBERED.fullmatch(line) for line in lines]
    num_filled = sum(bool(line.strip()) for line in lines)
    numbers = [int(match[1]) for match in found if match]
    is_rising = all(low <= high for low, high in pairwise(numbers))
    if len(numbers) < MIN_NUMBERED_SHARE * num_filled or not is_rising:
        return list(lines)
    gaps = [len(match[2]) for match in found if match and match[3] and not match[2].strip(" ")]
    gap = min([*gaps, MAX_NUMBER_GAP])
    return [
        _behind_number(match, gap) if match and not original.has(line) else line
        for line, match in zip(lines, found, strict=True)
    ]


def _behind_number(match: re.Match[str], gap: int) -> str:
    """The line behind a number; of spaces between them `gap` are not the line's."""
    mark, text = match[2], match[3]
    return text if mark.strip(" ") else mark[gap:] + text


def within_fences(
    lines: Sequence[str], original: OriginalIndex, *, language: str | None
) -> list[str]:
    """The lines between Markdown fences, with a marker between two; all lines without a fence."""
    marks = [place for place, line in enumerate(lines) if line.strip().startswith("```")]
    if len(marks) < 2 or len(marks) % 2 or any(original.has(lines[place]) for place in marks):
        return list(lines)
    kept: list[str] = []
    for start, end in zip(marks[::2], marks[1::2], strict=True):
        if kept:
            kept.append(usual_marker(language))
        kept += lines[start + 1 : end]
    return kept


def has_note(line: str) -> bool:
    """Whether a line ends with a remark to the reader."""
    return _note_of(line) is not None


def _note_of(line: str) -> re.Match[str] | None:
    return _NOTE.search(line) if len(line) <= MAX_NOTED_CHARS else None


def without_notes(lines: Sequence[str], original: OriginalIndex) -> list[str]:
    """The lines without comments that speak of the edit ("// <- added")."""
    kept = []
    for line in lines:
        note = None if original.has(line) else _note_of(line)
        if note is None or parse_marker(line) is not None or note_names(line):
            kept.append(line)
        elif line[: note.start()].strip():
            kept.append(line[: note.start()].rstrip())
    return kept


def with_markers(
    lines: Sequence[str], original: OriginalIndex, *, language: str | None
) -> list[str]:
    """The lines with a marker for each that is an ellipsis or says that something stays."""
    marker = usual_marker(language)
    return [
        indent_of(line) + marker
        if len(line) <= MAX_NOTED_CHARS
        and not original.has(line)
        and (_ELLIPSIS.fullmatch(line) or _REST.fullmatch(line))
        else line
        for line in lines
    ]


def with_file_tabs(lines: Sequence[str], original: OriginalIndex) -> list[str]:
    """The lines indented by tabs or by spaces as the file is."""
    own, sent = (indent_unit(text) or USUAL_UNIT for text in (original.lines, lines))
    has_tabs = any(line.startswith("\t") for line in original.lines)
    changed = []
    for line in lines:
        indent = indent_of(line)
        if has_tabs and indent and "\t" not in indent:
            num_steps, rest = divmod(len(indent), len(sent))
            changed.append("\t" * num_steps + " " * rest + line.lstrip())
        elif not has_tabs and "\t" in indent:
            changed.append(indent.replace("\t", own) + line.lstrip())
        else:
            changed.append(line)
    return changed


def with_file_unit(lines: Sequence[str], original: OriginalIndex) -> list[str]:
    """The lines with steps half or twice as wide, if more of them stand in the file so."""
    own = set(original.lines)
    scaled = [_scaled(lines, 1, 1), _scaled(lines, 2, 1), _scaled(lines, 1, 2)]
    return max(scaled, key=lambda one: sum(bool(line.strip()) and line in own for line in one))


def _scaled(lines: Sequence[str], multiplier: int, divisor: int) -> list[str]:
    """The lines with other indentation; tabs and lines of a comment with stars stay."""
    found = []
    for line in lines:
        indent = indent_of(line)
        text = line[len(indent) :]
        is_kept = "\t" in indent or text.startswith("*")
        num = len(indent) if is_kept else len(indent) * multiplier // divisor
        found.append(indent[:num].ljust(num) + text)
    return found
