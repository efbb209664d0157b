"""What an update in doubt may mean, as a question with a few answers.

An id is a hash of the request's texts and of the text that it stands for. So nothing is stored: any
replica finds the text of an id by planning the same edit again, and an id of another edit, or of
the file as it was before, fits no text.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

from apply_service.apply.edit_request import EditRequest
from apply_service.edit.syntax.symbol import Symbol
from apply_service.edit.text.diff import diff_parts

MAX_CHOICES = 5
# Less likely ones are not offered beside two others.
MIN_PROBABILITY = 0.005
MAX_DIFF_LINES = 40
NUM_ID_DIGITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One text that an update may mean.

    `diff` has the parts of its unified diff that set it apart from the other choices;
    `num_lines_left_out` lines are cut off its end. What is changed there are the lines
    [start_line, end_line] of the original, from 1, in the definition `symbol` if there is one; new
    lines alone stand before start_line = end_line. `reason` is one sentence.
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


@dataclass(frozen=True, slots=True)
class _Part:
    """Changes that stand together, and their part of a unified diff."""

    changes: tuple[_Change, ...]
    text: str


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
    num_offered = max(sum(math.exp(weight) >= MIN_PROBABILITY for weight in weights), 2)
    original, texts = edit.original.lines, texts[: min(num_offered, MAX_CHOICES)]
    differences = [_differences(original, text) for text in texts]
    changes = [[change for part in parts for change in part.changes] for parts in differences]
    shared = set(changes[0]).intersection(*changes[1:]) if len(changes) > 1 else set()
    found = []
    for text, weight, parts in zip(texts, weights, differences, strict=False):
        own = [change for part in parts for change in part.changes if change not in shared]
        apart = [part.text for part in parts if not shared.issuperset(part.changes)]
        diff = [f"{line}\n" for line in "".join(apart).split("\n")[:-1]]
        start, end = (own[0].start, own[-1].end) if own else (0, len(original))
        found.append(
            Choice(
                id=choice_id(edit, text),
                diff="".join(diff[:MAX_DIFF_LINES]),
                num_lines_left_out=max(len(diff) - MAX_DIFF_LINES, 0),
                symbol=_symbol_around(symbols, start, end),
                start_line=start + 1,
                end_line=max(end, start + 1),
                probability=round(math.exp(weight), 4),
                reason=_reason_of(original, own, symbols),
            )
        )
    return tuple(found)


def _differences(original: Sequence[str], text: Sequence[str]) -> list[_Part]:
    old, new = ([line + "\n" for line in lines] for lines in (original, text))
    return [
        _Part(
            tuple(
                _Change(hunk.old_start, hunk.old_end, tuple(text[hunk.new_start : hunk.new_end]))
                for hunk in hunks
            ),
            part,
        )
        for hunks, part in diff_parts(old, new)
    ]


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
