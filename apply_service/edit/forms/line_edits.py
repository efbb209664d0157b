"""Edits of lines that are named by their numbers, with their hashes or without."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from apply_service.edit.forms.form import LineEdit, NamedLine
from apply_service.edit.forms.reading import Reading, refused

NUM_HASH_DIGITS = 4
MAX_LISTED = 8
# New lines that repeat a line beside those they replace: how often that is a mistake.
ECHO_SHARE = 0.6


class _Span(NamedTuple):
    """Lines [start, end) of the original become `lines`; `is_checked` if the old ones were sent."""

    start: int
    end: int
    lines: tuple[str, ...]
    is_checked: bool = False


def line_hash(line: str) -> str:
    """The hash of a line: the first digits of its SHA-256, white space at its end left out."""
    encoded = line.rstrip().encode("utf-8", "surrogatepass")
    return hashlib.sha256(encoded).hexdigest()[:NUM_HASH_DIGITS]


def hashed_line(number: int, line: str) -> str:
    """A line as NUMBER:HASH|TEXT."""
    return f"{number}:{line_hash(line)}|{line}"


def line_readings(original: tuple[str, ...], edits: Sequence[LineEdit]) -> list[Reading]:
    """The text that the edits make, and another one if it seems that they miss a line.

    Raises FormError.
    """
    spans = [_span(original, edit, number) for number, edit in enumerate(edits, start=1)]
    in_order = sorted(spans, key=lambda span: (span.start, span.end > span.start))
    for before, after in pairwise(in_order):
        if after.start < before.end:
            raise refused(
                "contradicting_segments",
                f"two edits claim line {after.start + 1} of the original",
                "make one edit of them; all line numbers are those of the file as it was sent",
                after.start + 1,
            )
    sent = Reading(_written(original, in_order))
    trimmed = Reading(
        _written(original, [_without_echo(original, span) for span in in_order]), ECHO_SHARE
    )
    if trimmed.lines == sent.lines:
        return [sent]
    return [trimmed, Reading(sent.lines, 1 - ECHO_SHARE)]


def _span(original: Sequence[str], edit: LineEdit, number: int) -> _Span:
    named = [line for line in (edit.first, edit.last) if line is not None]
    for line in named:
        if line.number > len(original):
            raise refused(
                "line_not_found",
                f"edit {number} names line {line.number}, but the original has {len(original)}",
                "lines count from 1; read the file again and send the numbers that it has now",
            )
    for line in named:
        _check_hash(original, line, number)
    if edit.first is None:
        place = len(original) if edit.op == "append" else 0
        return _Span(place, place, edit.lines)
    start = edit.first.number - 1
    if edit.last is None:
        place = start + 1 if edit.op == "append" else start
        return _Span(place, place, edit.lines)
    end = edit.last.number
    present = tuple(original[start:end])
    if edit.old is not None and list(map(str.rstrip, edit.old)) != list(map(str.rstrip, present)):
        raise refused(
            "stale_line",
            f"edit {number} replaces lines {start + 1} to {end}, but they are not its old_string",
            _fresh(original, start, end),
            start + 1,
        )
    return _Span(start, end, edit.lines, is_checked=edit.old is not None)


def _check_hash(original: Sequence[str], line: NamedLine, number: int) -> None:
    place = line.number - 1
    if line.hash is None or line.hash == line_hash(original[place]):
        return
    moved = [at for at, text in enumerate(original) if line_hash(text) == line.hash]
    hint = _fresh(original, max(place - 1, 0), place + 2)
    if len(moved) == 1:
        hint += f"; the hash is that of {hashed_line(moved[0] + 1, original[moved[0]])}"
    raise refused(
        "stale_line",
        f"edit {number} names line {line.number} by the hash {line.hash}, which it does not have",
        hint,
        line.number,
    )


def _fresh(original: Sequence[str], start: int, end: int) -> str:
    listed = [
        hashed_line(at + 1, original[at])
        for at in range(start, min(end, start + MAX_LISTED, len(original)))
    ]
    return "read the file again; it has now: " + " / ".join(listed)


def _without_echo(original: Sequence[str], span: _Span) -> _Span:
    """The span without new lines at its borders that stand there already."""
    start, end, lines, is_checked = span
    is_insertion = start == end
    if is_checked or not lines or (is_insertion and len(lines) == 1):
        return span
    first, last = (None, None) if is_insertion else (original[start], original[end - 1])
    if _is_echo(original, start - 1, lines[0], replaced=first):
        lines = lines[1:]
    if lines and _is_echo(original, end, lines[-1], replaced=last):
        lines = lines[:-1]
    return _Span(start, end, lines)


def _is_echo(original: Sequence[str], place: int, line: str, *, replaced: str | None) -> bool:
    """Whether a line is that at `place`, and not the one it replaces."""
    if not 0 <= place < len(original) or not line.strip():
        return False
    return line == original[place] and line != replaced


def _written(original: tuple[str, ...], spans: Sequence[_Span]) -> tuple[str, ...]:
    written: list[str] = []
    end = 0
    for span in spans:
        written += original[end : span.start]
        written += span.lines
        end = span.end
    return (*written, *original[end:])
