"""What an update in doubt may mean, as a question with a few answers.

If the likeliest text keeps or removes lines of which the update says nothing, the second answer is
the text that differs from it in these lines alone, and both say so.

An id is a hash of the request's texts and of the text that it stands for. So nothing is stored: any
replica finds the text of an id by planning the same edit again, and an id of another edit, or of
the file as it was before, fits no text.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from apply_service.apply.edit_request import EditRequest
from apply_service.edit.syntax.symbol import Symbol
from apply_service.edit.syntax.syntax import SyntaxTree
from apply_service.edit.text.diff import diff_parts
from apply_service.edit.text.words import counted
from apply_service.edit.verdict.comparison import shown
from apply_service.edit.verdict.omission import Omission, find_omission

if TYPE_CHECKING:  # it brings numpy and the scores, for which no command line waits
    from apply_service.edit.place.merge import MergePlan

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


@dataclass(frozen=True, slots=True)
class Doubt:
    """An edit and what it may mean, from which every process makes the same choices.

    `tree` is the syntax of the original, and `merge` that of `edit`.
    """

    edit: EditRequest
    update_lines: tuple[str, ...]
    merge: MergePlan
    tree: SyntaxTree | None

    def choices(self) -> tuple[Choice, ...]:
        """What the caller is asked about."""
        symbols = () if self.tree is None else self.tree.symbols
        merge = self.merge
        return choices_among(self.edit, merge.merges, merge.weights, symbols, self._omission())

    def texts(self) -> Iterator[tuple[str, ...]]:
        """Every text that may have been offered, as lines."""
        yield from self.merge.merges
        omission = self._omission()
        if omission is not None:
            yield from (omission.kept, omission.removed)

    def _omission(self) -> Omission | None:
        if self.edit.is_form:
            return None  # the caller has named the lines that go
        instruction = self.edit.instruction
        return find_omission(self.merge, self.update_lines, tree=self.tree, instruction=instruction)


def choices_among(
    edit: EditRequest,
    texts: Sequence[Sequence[str]],
    weights: Sequence[float],
    symbols: Sequence[Symbol] = (),
    omission: Omission | None = None,
) -> tuple[Choice, ...]:
    """The likeliest of the texts that an edit may mean, `weights` their log-probabilities.

    `symbols` are the definitions of the original, outer before inner. An `omission` of the first
    text makes its other half the second one.
    """
    offered = _offered(texts, list(map(math.exp, weights)), omission)
    original, texts = edit.original.lines, [text for text, _ in offered]
    differences = [_differences(original, text) for text in texts]
    changes = [[change for part in parts for change in part.changes] for parts in differences]
    shared = set(changes[0]).intersection(*changes[1:]) if len(changes) > 1 else set()
    found = []
    for (text, probability), parts in zip(offered, differences, strict=True):
        own = [change for part in parts for change in part.changes if change not in shared]
        apart = [part.text for part in parts if not shared.issuperset(part.changes)]
        diff = [f"{line}\n" for line in "".join(apart).split("\n")[:-1]]
        start, end = (own[0].start, own[-1].end) if own else (0, len(original))
        reason = _reason_of(original, own, symbols)
        if omission is not None and text in (omission.kept, omission.removed):
            start, end = omission.runs[0][0], omission.runs[-1][1]
            verb = "keeps" if text == omission.kept else "removes"
            reason = f"It {verb} {_left_out(original, omission, symbols)}."
        found.append(
            Choice(
                id=choice_id(edit, text),
                diff="".join(diff[:MAX_DIFF_LINES]),
                num_lines_left_out=max(len(diff) - MAX_DIFF_LINES, 0),
                symbol=_symbol_around(symbols, start, end),
                start_line=start + 1,
                end_line=max(end, start + 1),
                probability=round(probability, 4),
                reason=reason,
            )
        )
    return tuple(found)


def _offered(
    texts: Sequence[Sequence[str]], probabilities: Sequence[float], omission: Omission | None
) -> list[tuple[Sequence[str], float]]:
    """The texts of a question with their probabilities."""
    num_likely = max(sum(one >= MIN_PROBABILITY for one in probabilities), 2)
    ranked = list(zip(texts, probabilities, strict=True))
    offered = ranked[:num_likely]
    if omission is not None:
        other = omission.removed if texts[0] == omission.kept else omission.kept
        # The ranking knows nothing of a text that was made but that no merge is like it.
        least = min(*probabilities, max(1 - sum(probabilities), 0.0))
        known = next((one for text, one in ranked if text == other), least)
        rest = [one for one in offered[1:] if one[0] != other]
        offered = [offered[0], (other, known), *rest]
    return offered[:MAX_CHOICES]


def _left_out(original: Sequence[str], omission: Omission, symbols: Sequence[Symbol]) -> str:
    """The lines that an update leaves out, by name and number."""
    (start, end), *others = omission.runs
    headers = (one.header for one in symbols if one.start == start and one.end <= end)
    header = next(headers, start)
    symbol = _symbol_around(symbols, start, end, is_larger=True)
    where = _span(start, end) + (f" in {symbol}" if symbol else "")
    more = f", and {counted(len(others), 'more place')}" if others else ""
    return f"{shown(original[header])} ({where}){more}, which the update leaves out without a word"


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


def _symbol_around(
    symbols: Sequence[Symbol], start: int, end: int, *, is_larger: bool = False
) -> str | None:
    """The qualified name of the innermost definition around lines [start, end).

    If it `is_larger`, it has other lines too.
    """
    inner: Symbol | None = None
    for symbol in symbols:
        is_around = symbol.start <= start and max(end, start + 1) <= symbol.end
        has_more = symbol.start < start or end < symbol.end
        if is_around and symbol.kind != "import" and (has_more or not is_larger):
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
    more = f", and changes {counted(num_more, 'more place')}" if num_more else ""
    num_new, num_old = len(first.lines), first.end - first.start
    if not num_old:
        where = f"after line {first.start}" if first.start else "before the first line"
        added = counted(num_new, "line")
        return f"It adds {added} {where}{place} and removes none there{more}."
    span = _span(first.start, first.end)
    if not num_new:
        return f"It removes {span}{place}{more}."
    return f"It replaces {span}{place} by {counted(num_new, 'line')}{more}."


def _span(start: int, end: int) -> str:
    return f"line {end}" if end - start == 1 else f"lines {start + 1} to {end}"
