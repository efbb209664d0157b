"""All candidates of one segment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from apply_service.edit.place.candidates.candidate import Candidate, KeptRun, Origin
from apply_service.edit.place.candidates.filled_lines import FilledLines
from apply_service.edit.place.candidates.row_matcher import RowMatcher
from apply_service.edit.place.candidates.rows import Row
from apply_service.edit.place.candidates.spans import SpanSearch
from apply_service.edit.read.instruction_comments import is_comment

# Old lines between two rows that are sent next to each other; from so many on, perhaps forgotten.
MIN_FORGOTTEN = 3
MAX_MIXED_RUNS = 4
MAX_SHIFT = 40
# Sent lines that may be the file's own with a mistake; of a few, each choice of them.
MIN_RESTORED_RATIO = 0.7
NEARLY_EQUAL_RATIO = 0.92
MAX_RESTORED = 4


def candidates_of(
    original: FilledLines, rows: Sequence[Row], *, opens_file: bool, closes_file: bool
) -> list[Candidate]:
    """Where a segment may go, in the order of the file."""
    matcher = RowMatcher(original, rows)
    spans = SpanSearch(original, rows, matcher).find(opens_file=opens_file, closes_file=closes_file)
    found: dict[Candidate, None] = {}
    for (start, end), origins in sorted(spans.origins.items()):
        pairs = tuple(matcher.align(start, end))
        for candidate in _variants(
            original, rows, matcher, (start, end), pairs, frozenset(origins)
        ):
            found[candidate] = None
    return list(found)


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
    restored_choices = _restored_choices(matcher, pairs)
    for shift in _shifts(original, rows, span, pairs):
        for left_out in _kept_choices(original, len(rows), span, pairs):
            for unheard in dict.fromkeys(((), optional)):
                for restored in restored_choices:
                    lines = (KeptRun(row, line, line + 1) for row, line in restored)
                    yield Candidate(
                        start=span[0],
                        end=span[1],
                        shift=shift,
                        kept=tuple(sorted((*left_out, *lines))),
                        dropped=tuple(sorted((*unheard, *(row for row, _ in restored)))),
                        pairs=pairs,
                        origins=origins,
                    )


def _restored_choices(
    matcher: RowMatcher, pairs: Sequence[tuple[int, int]]
) -> list[tuple[tuple[int, int], ...]]:
    """Lines that were sent with small mistakes: as sent, or as the file has them."""
    alike = [
        (row, line)
        for row, line in pairs
        if matcher.ratios[row, line] >= MIN_RESTORED_RATIO and not matcher.is_equal[row, line]
    ]
    if not alike or len(pairs) == 1:
        return [()]
    choices: list[tuple[tuple[int, int], ...]] = [(), tuple(alike)]
    if len(alike) <= MAX_RESTORED:
        sizes = range(1, len(alike))
        choices += [choice for size in sizes for choice in combinations(alike, size)]
    else:
        near = tuple(pair for pair in alike if matcher.ratios[pair] >= NEARLY_EQUAL_RATIO)
        choices += [near, *(tuple(pair for pair in alike if pair != one) for one in alike)]
    return list(dict.fromkeys(choices))


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


def _kept_choices(
    original: FilledLines, num_rows: int, span: tuple[int, int], pairs: Sequence[tuple[int, int]]
) -> list[tuple[KeptRun, ...]]:
    """Lines that may have been meant to stay though no marker stands for them."""
    left_out: list[KeptRun] = []
    mixed: list[KeptRun] = []
    row_above, line_above = -1, span[0] - 1
    for row, line in [*pairs, (num_rows, span[1])]:
        num_lines = line - line_above - 1
        if row_above >= 0 and row < num_rows and num_lines:
            run = KeptRun(row, line_above + 1, line)
            if row == row_above + 1:
                left_out.append(run)
            elif num_lines >= MIN_FORGOTTEN:
                mixed += [run, KeptRun(row_above + 1, line_above + 1, line)]
        row_above, line_above = row, line
    choices: list[tuple[KeptRun, ...]] = [()]
    if left_out:
        long = tuple(run for run in left_out if run.end - run.start >= MIN_FORGOTTEN)
        comments = [run for run in left_out if _is_comment(original, run)]
        choices += [tuple(comments), tuple(run for run in left_out if run not in comments)]
        choices += [tuple(left_out), (max(left_out, key=_length),), *([long] if long else [])]
    choices += [(run,) for run in sorted(mixed, key=_length, reverse=True)[:MAX_MIXED_RUNS]]
    return list(dict.fromkeys(choices))


def _is_comment(original: FilledLines, run: KeptRun) -> bool:
    return all(is_comment(line) for line in original.stripped[run.start : run.end])


def _length(run: KeptRun) -> int:
    return run.end - run.start
