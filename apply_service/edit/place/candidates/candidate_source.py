"""All candidates of one segment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, groupby, pairwise
from operator import itemgetter

from apply_service.edit.place.candidates.candidate import Candidate, KeptRun, Origin
from apply_service.edit.place.candidates.filled_lines import FilledLines
from apply_service.edit.place.candidates.row_matcher import RowMatcher
from apply_service.edit.place.candidates.rows import Row
from apply_service.edit.place.candidates.spans import SpanSearch
from apply_service.edit.read.instruction_comments import is_comment
from apply_service.edit.text.block_bounds import closes_block
from apply_service.edit.text.definition_names import definition_name, is_attribute

# Old lines between two rows that are sent next to each other; from so many on, perhaps forgotten.
MIN_FORGOTTEN = 3
MAX_MIXED_RUNS = 4
# Last rows that may be ends of blocks and nothing more.
MAX_CLOSING = 4
MAX_SHIFT = 40
# Sent lines that may be the file's own with a mistake; of a few, each choice of them.
MIN_RESTORED_RATIO = 0.7
NEARLY_EQUAL_RATIO = 0.92
MAX_RESTORED = 4
# Of more, each one may be the one that is not; of still more none is tried.
MAX_EXCEPTED = 24


def candidates_of(
    original: FilledLines,
    rows: Sequence[Row],
    *,
    opens_file: bool,
    closes_file: bool,
    matcher: RowMatcher | None = None,
) -> list[Candidate]:
    """Where a segment may go, in the order of the file.

    A definition of the segment never comes between an old one and the attribute above it.
    """
    matcher = matcher or RowMatcher(original, rows)
    parts_attribute = _defines(rows) and not is_attribute(rows[-1].stripped)
    spans = SpanSearch(original, rows, matcher).find(opens_file=opens_file, closes_file=closes_file)
    found: dict[Candidate, None] = {}
    for start, group in groupby(sorted(spans.origins), key=itemgetter(0)):
        ends = [end for _, end in group]
        if parts_attribute:
            ends = [end for end in ends if not _is_below_attribute(original, end)]
        for end, pairs in zip(ends, matcher.alignments(start, ends) if ends else (), strict=True):
            origins = frozenset(spans.origins[start, end])
            for one in _variants(original, rows, matcher, (start, end), tuple(pairs), origins):
                found[one] = None
    return list(found)


def _defines(rows: Sequence[Row]) -> bool:
    return any(definition_name(row.text) is not None for row in rows)


def _is_below_attribute(original: FilledLines, place: int) -> bool:
    """Whether a definition stands there with an attribute above."""
    if not 0 < place < len(original) or not is_attribute(original.stripped[place - 1]):
        return False
    line = original.lines[place]
    return is_attribute(line) or definition_name(line) is not None


def _variants(
    original: FilledLines,
    rows: Sequence[Row],
    matcher: RowMatcher,
    span: tuple[int, int],
    pairs: tuple[tuple[int, int], ...],
    origins: frozenset[Origin],
) -> Iterator[Candidate]:
    """A span with each shift, choice of kept and restored lines, and choice of dropped rows."""
    optional = tuple(number for number, row in enumerate(rows) if row.is_optional)
    closing: list[tuple[int, ...]] = []
    if span[0] == span[1] < len(original) and closes_block(original.stripped[span[0]]):
        below = original.stripped[span[0]]
        closing = [one for one in _closing_choices(rows) if rows[one[0]].stripped == below]
    restored_choices = _restored_choices(matcher, pairs)
    shifts: list[tuple[int, tuple[int, ...]]] = [
        (shift, ()) for shift in _shifts(original, rows, span, pairs)
    ]
    by_row = _row_shifts(original, rows, matcher, pairs)
    if by_row:
        shifts.append((by_row[0], by_row))
    for shift, row_shifts in shifts:
        for left_out in _kept_choices(original, len(rows), span, pairs):
            for unheard in dict.fromkeys(((), optional, *closing)):
                for restored in restored_choices:
                    lines = (KeptRun(row, line, line + 1) for row, line in restored)
                    yield Candidate(
                        start=span[0],
                        end=span[1],
                        shift=shift,
                        row_shifts=row_shifts,
                        kept=tuple(sorted((*left_out, *lines))),
                        dropped=tuple(sorted((*unheard, *(row for row, _ in restored)))),
                        pairs=pairs,
                        origins=origins,
                    )


def _closing_choices(rows: Sequence[Row]) -> list[tuple[int, ...]]:
    """The last rows that may only say in which block new lines end: one end of a block, or more."""
    choices: list[tuple[int, ...]] = []
    for number in reversed(range(1, len(rows))):
        row = rows[number]
        if not closes_block(row.stripped) or row.indent >= rows[0].indent:
            break
        choices.append((number, *(choices[-1] if choices else ())))
    return choices[:MAX_CLOSING]


def _restored_choices(
    matcher: RowMatcher, pairs: Sequence[tuple[int, int]]
) -> list[tuple[tuple[int, int], ...]]:
    """Lines that were sent with small mistakes: as sent, or as the file has them."""
    alike = [
        (row, line)
        for row, line in pairs
        if matcher.ratios[row, line] >= MIN_RESTORED_RATIO and not matcher.is_equal[row, line]
    ]
    if not alike:
        return [()]
    cosmetic = tuple(
        pair
        for pair in alike
        if _is_cosmetic(matcher.row_text(pair[0]), matcher.line_text(pair[1]))
    )
    if len(pairs) == 1:
        return list(dict.fromkeys([(), cosmetic]))
    choices: list[tuple[tuple[int, int], ...]] = [(), tuple(alike), cosmetic]
    if len(alike) <= MAX_RESTORED:
        sizes = range(1, len(alike))
        choices += [choice for size in sizes for choice in combinations(alike, size)]
    else:
        near = tuple(pair for pair in alike if matcher.ratios[pair] >= NEARLY_EQUAL_RATIO)
        excepted = alike if len(alike) <= MAX_EXCEPTED else ()
        choices += [near, *(tuple(pair for pair in alike if pair != one) for one in excepted)]
    return list(dict.fromkeys(choices))


def _is_cosmetic(row: str, line: str) -> bool:
    """True if two lines differ in signs alone, or in a comment that the file has behind the row."""
    if line.startswith(row) and is_comment(line[len(row) :].strip() or "-"):
        return True
    return [*filter(str.isalnum, row)] == [*filter(str.isalnum, line)]


def _shifts(
    original: FilledLines,
    rows: Sequence[Row],
    span: tuple[int, int],
    pairs: Sequence[tuple[int, int]],
) -> list[int]:
    """By how many columns the rows may have to be moved."""
    shifts = [0]
    for row, line in pairs:
        if sum(map(str.isalnum, rows[row].stripped)) > 4:
            shifts.append(original.indents[line] - rows[row].indent)
            break
    if (not pairs or span[0] == span[1]) and min(row.indent for row in rows) == 0:
        beside = [line for line in (span[0], span[0] - 1) if 0 <= line < len(original)]
        shifts += [original.indents[line] - rows[0].indent for line in beside]
    return [shift for shift in dict.fromkeys(shifts) if abs(shift) <= MAX_SHIFT]


def _row_shifts(
    original: FilledLines,
    rows: Sequence[Row],
    matcher: RowMatcher,
    pairs: Sequence[tuple[int, int]],
) -> tuple[int, ...]:
    """Each row's own shift where the sent indentation is not the file's; empty if one fits all.

    A paired row stands as deep as its line. Another one is as much deeper than the paired row
    above as it was sent, in units of the file; if a paired row was sent as deep, like that one.
    """
    shifts = {
        row: original.indents[line] - rows[row].indent
        for row, line in pairs
        if matcher.ratios[row, line] >= MIN_RESTORED_RATIO
    }
    if len(shifts) < 2 or len(set(shifts.values())) < 2:
        return ()
    scale = _unit_scale(rows, shifts)
    found: list[int] = []
    last: int | None = None
    known: dict[int, int] = {}
    for number, row in enumerate(rows):
        if number in shifts:
            found.append(shifts[number])
            known[row.indent] = shifts[number]
            last = number
        elif row.indent in known:
            found.append(known[row.indent])
        else:
            above = min(shifts) if last is None else last
            deeper = row.indent - rows[above].indent
            found.append(shifts[above] + round(deeper * scale) - deeper)
    return tuple(found) if max(map(abs, found)) <= MAX_SHIFT else ()


def _unit_scale(rows: Sequence[Row], shifts: dict[int, int]) -> float:
    """How many columns of the file one sent column of indentation is."""
    sent = sorted({rows[row].indent for row in shifts})
    own = {rows[row].indent: rows[row].indent + shift for row, shift in shifts.items()}
    steps = [(high - low, own[high] - own[low]) for low, high in pairwise(sent)]
    rising = [(theirs, ours) for theirs, ours in steps if ours > 0]
    return rising[0][1] / rising[0][0] if rising else 1.0


def _kept_choices(
    original: FilledLines, num_rows: int, span: tuple[int, int], pairs: Sequence[tuple[int, int]]
) -> list[tuple[KeptRun, ...]]:
    """Lines that may have been meant to stay though no marker stands for them."""
    left_out: list[KeptRun] = []
    mixed: list[KeptRun] = []
    comments: list[KeptRun] = []
    row_above, line_above = -1, span[0] - 1
    for row, line in [*pairs, (num_rows, span[1])]:
        num_lines = line - line_above - 1
        if row_above >= 0 and row < num_rows and num_lines:
            run = KeptRun(row, line_above + 1, line)
            comments += _comment_runs(original, run)
            if row == row_above + 1:
                left_out.append(run)
            elif num_lines >= MIN_FORGOTTEN:
                mixed += [run, KeptRun(row_above + 1, line_above + 1, line)]
        row_above, line_above = row, line
    choices: list[tuple[KeptRun, ...]] = [()]
    if left_out:
        long = tuple(run for run in left_out if run.end - run.start >= MIN_FORGOTTEN)
        code = tuple(run for run in left_out if not _is_comment(original, run))
        choices += [tuple(run for run in left_out if run not in code), code]
        choices += [tuple(left_out), (max(left_out, key=_length),), *([long] if long else [])]
    choices.append(tuple(comments))
    choices += [(run,) for run in sorted(mixed, key=_length, reverse=True)[:MAX_MIXED_RUNS]]
    return list(dict.fromkeys(choices))


def _comment_runs(original: FilledLines, run: KeptRun) -> Iterator[KeptRun]:
    """The comments of a run, each with the row before which it stays."""
    start: int | None = None
    for line in range(run.start, run.end + 1):
        if line < run.end and is_comment(original.stripped[line]):
            start = line if start is None else start
        elif start is not None:
            yield KeptRun(run.row, start, line)
            start = None


def _is_comment(original: FilledLines, run: KeptRun) -> bool:
    return all(is_comment(line) for line in original.stripped[run.start : run.end])


def _length(run: KeptRun) -> int:
    return run.end - run.start
