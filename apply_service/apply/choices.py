"""What an update in doubt may mean, as a question with a few answers.

An id is a hash of the request's texts and of the text that it stands for. So nothing is stored: any
replica finds the text of an id by planning the same edit again, and an id of another edit, or of
the file as it was before, fits no text.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from apply_service.apply.edit_request import EditRequest
from apply_service.edit.syntax.symbol import Symbol
from apply_service.edit.text.alignment import bounded_hunks

MAX_CHOICES = 5
MAX_DIFF_LINES = 40
NUM_CONTEXT_LINES = 2
NUM_ID_DIGITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One text that an update may mean.

    `diff` is what sets it apart from the other choices, as a unified diff of the original;
    `num_lines_left_out` lines are cut off its end. The lines of the original are [start_line,
    end_line], from 1, in the definition `symbol` if there is one. `reason` is one sentence.
    """

    id: str
    diff: str
    num_lines_left_out: int
    symbol: str | None
    start_line: int
    end_line: int
    probability: float
    reason: str


@dataclass(frozen=True, slots=True)
class _Change:
    """Old lines [start, end) become new ones."""

    start: int
    end: int
    lines: tuple[str, ...]


def choice_id(edit: EditRequest, lines: Sequence[str]) -> str:
    """The id of a text as the result of an edit: hexadecimal digits of a SHA-256."""
    digest = hashlib.sha256()
    for text in (edit.path, edit.language, edit.instruction, edit.update, edit.original.decode()):
        encoded = b"" if text is None else text.encode("utf-8", "surrogatepass")
        digest.update(b"%d:%d:" % (text is not None, len(encoded)) + encoded)
    digest.update("\n".join(lines).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:NUM_ID_DIGITS]


def choices_among(
    edit: EditRequest,
    texts: Sequence[Sequence[str]],
    weights: Sequence[float],
    symbols: Sequence[Symbol] = (),
) -> tuple[Choice, ...]:
    """The likeliest of the texts that an edit may mean, `weights` their log-probabilities.

    `symbols` are the definitions of the original, outer before inner.
    """
    original, texts = edit.original.lines, texts[:MAX_CHOICES]
    changes = [list(_changes(original, text)) for text in texts]
    shared = set(changes[0]).intersection(*changes[1:]) if len(changes) > 1 else set()
    found = []
    for text, weight, all_changes in zip(texts, weights, changes, strict=False):
        own = [change for change in all_changes if change not in shared]
        diff, num_left_out = _diff_of(original, own)
        start, end = (own[0].start, own[-1].end) if own else (0, len(original))
        found.append(
            Choice(
                id=choice_id(edit, text),
                diff=diff,
                num_lines_left_out=num_left_out,
                symbol=_symbol_around(symbols, start, end),
                start_line=min(start + 1, max(len(original), 1)),
                end_line=max(end, start + 1),
                probability=round(math.exp(weight), 4),
                reason=_reason_of(original, own, symbols),
            )
        )
    return tuple(found)


def _changes(original: Sequence[str], text: Sequence[str]) -> Iterator[_Change]:
    for hunk in bounded_hunks(original, text):
        yield _Change(hunk.old_start, hunk.old_end, tuple(text[hunk.new_start : hunk.new_end]))


def _diff_of(original: Sequence[str], changes: Sequence[_Change]) -> tuple[str, int]:
    """A diff of some changes, and how many of its lines are left out."""
    lines: list[str] = []
    for change in changes:
        lead = max(change.start - NUM_CONTEXT_LINES, 0)
        trail = min(change.end + NUM_CONTEXT_LINES, len(original))
        lines.append(f"@@ line {change.start + 1} @@")
        lines += [f" {line}" for line in original[lead : change.start]]
        lines += [f"-{line}" for line in original[change.start : change.end]]
        lines += [f"+{line}" for line in change.lines]
        lines += [f" {line}" for line in original[change.end : trail]]
    num_left_out = max(len(lines) - MAX_DIFF_LINES, 0)
    return "".join(f"{line}\n" for line in lines[:MAX_DIFF_LINES]), num_left_out


def _symbol_around(symbols: Sequence[Symbol], start: int, end: int) -> str | None:
    """The qualified name of the innermost definition around lines [start, end)."""
    inner: Symbol | None = None
    for symbol in symbols:
        is_around = symbol.start <= start and max(end, start + 1) <= symbol.end
        if is_around and symbol.kind != "import":
            inner = symbol
    if inner is None:
        return None
    names = [inner.name]
    while inner.parent is not None:
        inner = symbols[inner.parent]
        names.append(inner.name)
    return ".".join(reversed(names))


def _reason_of(
    original: Sequence[str], changes: Sequence[_Change], symbols: Sequence[Symbol]
) -> str:
    """What the changes do, in one sentence."""
    if not changes:
        return "It changes nothing where the others differ."
    first, num_more = changes[0], len(changes) - 1
    symbol = _symbol_around(symbols, first.start, first.end)
    place = f" in {symbol}" if symbol else ""
    more = f", and changes {num_more} more place{'s' * (num_more > 1)}" if num_more else ""
    num_new, num_old = len(first.lines), first.end - first.start
    if not num_old:
        where = f"after line {first.start}" if first.start else "before the first line"
        return f"It adds {_counted(num_new)} {where}{place} and removes none there{more}."
    span = f"line {first.end}" if num_old == 1 else f"lines {first.start + 1} to {first.end}"
    if not num_new:
        return f"It removes {span}{place}{more}."
    return f"It replaces {span}{place} by {_counted(num_new)}{more}."


def _counted(number: int) -> str:
    return "1 line" if number == 1 else f"{number} lines"
