"""Edits that send something new alone; made by taking it out of a file.

The last definition of a block is sent without its neighbours, or with only the headers around it.
The first one at the margin is sent with a marker behind it alone.
One between two others is sent with the first line of the one below it, or the last line above it,
and so is a line in a row of lines that begin alike, such as imports and fields. The last of a row
is sent with the headers around it and markers. All of them replace nothing. A line of a row that is
sent without any other has no place, unless it is an import: it must be asked where it belongs, and
whether it takes the place of one like it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from apply_service.edit.place.candidates.filled_lines import moved
from apply_service.edit.place.features.name_features import IMPORT
from apply_service.edit.read.marker_phrases import usual_marker
from apply_service.edit.syntax.definitions import find_definitions
from apply_service.edit.syntax.languages import language_of
from apply_service.edit.syntax.symbol import Symbol
from apply_service.edit.syntax.syntax import parse
from apply_service.edit.text.block_bounds import closes_block, columns
from apply_service.edit.text.brackets import OPENING_BRACKETS
from apply_service.edit.text.line_index import indent_of
from apply_service.edit.text.text_file import split_lines
from apply_service.evaluate.cases.case_file import Case
from training.merges.examples import fold_of

MIN_LINES, MAX_LINES = 2, 40
MAX_A_FILE = 4
# Lines of a row that begin alike.
MIN_ROW = 3
# The first signs of a line tell what kind it is.
_SIGN = re.compile(r"[^\w\s]")
NUM_SIGNS = 3
# Blocks of these kinds hold statements, whose order means something.
_BODIES = frozenset({"function", "constant"})


def definition_cases(cases: Sequence[Case], limit: int, seed: int = 3) -> Iterator[Case]:
    """At most `limit` edits that send a part of the originals of other cases, few a file."""
    return of_each_file(cases, _taken_out, limit, max_a_file=MAX_A_FILE, seed=seed)


def of_each_file(
    cases: Sequence[Case],
    make: Callable[[Case, random.Random], Iterator[Case]],
    limit: int,
    *,
    max_a_file: int,
    seed: int,
) -> Iterator[Case]:
    """At most `limit` of the cases that `make` finds in the original of another one."""
    rng = random.Random(seed)
    seen: set[str] = set()
    num_made = 0
    for case in rng.sample(cases, len(cases)):
        if case.original in seen or case.must_refuse:
            continue
        seen.add(case.original)
        for made in islice(make(case, rng), min(max_a_file, limit - num_made)):
            num_made += 1
            yield made


def _taken_out(case: Case, rng: random.Random) -> Iterator[Case]:
    """Each with the rest of the file as its original, in the fold of the whole file."""
    lines, _ = split_lines(case.original)
    language = language_of(case.path, case.language, lines)
    marker = usual_marker(language)
    last = [(span, "last") for span in paragraphs(lines, language, is_last=True)]
    middle = [(span, "middle") for span in paragraphs(lines, language, is_last=False)]
    rows = [(span, "row") for span in _lines_of_rows(lines)]
    alone = [(span, "alone") for span, _ in rows if not IMPORT.match(lines[span[0]].strip())]
    fields = [(span, "field") for span in _ends_of_rows(lines, language)]
    first = [(span, "first") for span, _ in [*middle, *last] if not columns(lines[span[0]])]
    found = [
        one
        for some, limit in (
            *((last, len(last)), (middle, 2), (rows, 2)),
            *((sorted(first)[:1], 1), (alone, 1), (fields, 1)),
        )
        for one in rng.sample(some, min(len(some), limit))
    ]
    for number, ((start, end), kind) in enumerate(rng.sample(found, len(found))):
        above = start
        while kind not in ("row", "alone", "field") and not lines[above - 1].strip():
            above -= 1
        if kind == "first":
            update = [*lines[start:end], marker]
        elif kind == "alone":
            update = [marker, *lines[start:end], marker]
        elif kind == "field":
            update = update_inside(lines, start, marker, rng)
        elif kind == "last":
            update = update_around(lines, start, end, marker, rng)
        else:
            update = update_beside(lines, start, end, marker, rng)
        original = [*lines[:above], *lines[end:]]
        made = made_case(
            *(case, f"definition-{number}", f"definition, {kind}", original, update, lines),
            must_refuse=kind == "alone",
        )
        if fold_of(made) == fold_of(case):
            yield made


def made_case(
    case: Case,
    name: str,
    style: str,
    original: Sequence[str],
    update: Sequence[str],
    expected: Sequence[str],
    *,
    must_refuse: bool = False,
) -> Case:
    """A generated case of the file of another one, with its texts as lines."""
    original_text, update_text, expected_text = (
        "\n".join(lines) + "\n" for lines in (original, update, expected)
    )
    return Case(
        id=f"{name}-{case.id}",
        path=case.path,
        language=case.language,
        original=original_text,
        update=update_text,
        expected=expected_text,
        style=f"generated {style}",
        must_refuse=must_refuse,
    )


def update_beside(
    lines: Sequence[str], start: int, end: int, marker: str, rng: random.Random
) -> list[str]:
    """New lines with some above or below them, up to one that the file has once."""
    once = [place for place, line in enumerate(lines) if line.strip() and lines.count(line) == 1]
    above = next((place for place in reversed(once) if place < start), 0)
    below = next((place for place in once if place >= end), len(lines) - 1)
    side = rng.random()
    first = above if side < 0.4 else start
    last = below + 1 if side > 0.25 else end
    indent = indent_of(lines[start])
    return [indent + marker, *lines[first:last], indent_of(lines[last - 1]) + marker]


def _lines_of_rows(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Lines between two others that are as deep and begin with the same word."""
    words = [(columns(line), (line.split() or [""])[0]) for line in lines]
    for start in range(1, len(lines) - 1):
        near = words[max(start - MIN_ROW, 0) : start + MIN_ROW]
        alike = words[start - 1] == words[start] == words[start + 1] and near.count(words[start])
        is_code = lines[start].strip() and not lines[start].rstrip().endswith(OPENING_BRACKETS)
        is_alone = lines.count(lines[start]) == 1
        if alike and alike > MIN_ROW - 1 and is_code and is_alone:
            yield start, start + 1


def _ends_of_rows(lines: Sequence[str], language: str | None) -> Iterator[tuple[int, int]]:
    """The last ones of rows of lines that look alike, in a block that is no function."""
    looks = [(columns(line), tuple(_SIGN.findall(line)[:NUM_SIGNS])) for line in lines]
    tree = parse(lines, language)
    symbols = tree.symbols if tree is not None else find_definitions(lines)
    for place in range(MIN_ROW - 1, len(lines)):
        row = lines[place + 1 - MIN_ROW : place + 1]
        if (
            columns(lines[place])
            and all(map(str.strip, row))
            and looks[place][1]
            and {looks[place]} == set(looks[place + 1 - MIN_ROW : place + 1])
            and (
                not "".join(lines[place + 1 : place + 2]).strip()
                or looks[place + 1][0] < looks[place][0]
            )
            and not lines[place].rstrip().endswith((*OPENING_BRACKETS, "\\"))
            and row[-2].rstrip().endswith(",") == row[-1].rstrip().endswith(",")
            and lines.count(lines[place]) == 1
            and not _is_end(lines[place])
            and _kind_around(symbols, place, place + 1) not in _BODIES
            and all(_is_header(lines[one]) for one in _headers_above(lines, place))
        ):
            yield place, place + 1


def paragraphs(
    lines: Sequence[str], language: str | None, *, is_last: bool
) -> Iterator[tuple[int, int]]:
    """Paragraphs with a block, `[start, end)`, with one before: the last of a block, or others."""
    tree = parse(lines, language)
    symbols = tree.symbols if tree is not None else find_definitions(lines)
    for start in range(1, len(lines)):
        if not lines[start].strip() or lines[start - 1].strip() or _is_end(lines[start]):
            continue
        depth = columns(lines[start])
        end = _end_of(lines, start, depth)
        rest = next((line for line in lines[end:] if line.strip()), "")
        before = next((line for line in reversed(lines[:start]) if line.strip()), "")
        if (
            MIN_LINES <= end - start <= MAX_LINES
            and any(columns(line) > depth for line in lines[start:end] if line.strip())
            and (is_last if not rest or columns(rest) < depth else not is_last)
            and before
            and columns(before) >= depth
            and not before.rstrip().endswith(",")
            and _kind_around(symbols, start, end) not in _BODIES
            and all(_is_header(lines[place]) for place in _headers_above(lines, start))
        ):
            yield start, end


def _end_of(lines: Sequence[str], start: int, depth: int) -> int:
    """Where the paragraph ends: before a blank line, unless deeper lines or a closer follow."""
    end = start + 1
    for place in range(start + 1, len(lines)):
        line = lines[place]
        if not line.strip():
            continue
        is_level = columns(line) == depth and (place == end or _is_end(line))
        if columns(line) <= depth and not is_level:
            break
        end = place + 1
    return end


def _kind_around(symbols: Sequence[Symbol], start: int, end: int) -> str:
    around = [one for one in symbols if one.header < start and end <= one.end]
    return around[-1].kind if around else "file"


def _headers_above(lines: Sequence[str], start: int) -> list[int]:
    """The lines of less and less depth above a line, outermost first."""
    found: list[int] = []
    depth = columns(lines[start])
    for place in reversed(range(start)):
        if lines[place].strip() and columns(lines[place]) < depth:
            found.append(place)
            depth = columns(lines[place])
    return found[::-1]


def _is_end(line: str) -> bool:
    return closes_block(line.strip())


def _is_header(line: str) -> bool:
    """Whether a line alone is the header of a block; not the end of a longer one."""
    return not _is_end(line) and line.strip() not in OPENING_BRACKETS


def update_around(
    lines: Sequence[str], start: int, end: int, marker: str, rng: random.Random
) -> list[str]:
    shown = list(lines[start:end])
    indent = indent_of(shown[0])
    headers = _headers_above(lines, start)
    blank = [""] * rng.randint(0, 1)
    neighbour = _level_above(lines, start)
    if neighbour is not None and rng.random() < 0.2:
        inner = indent_of(next(line for line in lines[neighbour + 1 :] if line.strip()))
        shown = [*_framed(lines, neighbour, [inner + marker]), "", *shown]
    elif headers and (rng.random() < 0.5 or _has_twin(lines, headers[-1])):
        shown = [indent + marker, *blank, *shown]
        for header in reversed(headers):
            shown = _framed(lines, header, shown)
            if header != headers[0] and rng.random() < 0.5:
                shown = [indent_of(lines[header]) + marker, *shown]
        indent = ""
    elif headers and rng.random() < 0.2:
        num_columns = columns(indent)
        shown = [moved(line, -num_columns) if line.strip() else line for line in shown]
        indent = ""
    if rng.random() < 0.5:
        shown = [indent + marker, *blank, *shown]
    if rng.random() < 0.3:
        shown = [*shown, *blank, indent + marker]
    return shown


def update_inside(lines: Sequence[str], start: int, marker: str, rng: random.Random) -> list[str]:
    """One line in the blocks around it, with markers before and perhaps behind it."""
    indent = indent_of(lines[start])
    shown = [indent + marker, lines[start], *([indent + marker] if rng.random() < 0.6 else [])]
    for header in reversed(_headers_above(lines, start)):
        shown = _framed(lines, header, shown)
        if rng.random() < 0.7:
            shown = [indent_of(lines[header]) + marker, *shown]
    return shown


def _level_above(lines: Sequence[str], start: int) -> int | None:
    """The header of the block before a line, on its depth; None if there is no such block."""
    depth = columns(lines[start])
    for place in reversed(range(start)):
        line = lines[place]
        if line.strip() and columns(line) <= depth and not _is_end(line):
            below = next(one for one in lines[place + 1 :] if one.strip())
            is_block = columns(line) == depth < columns(below)
            return place if is_block and _is_header(line) else None
    return None


def _framed(lines: Sequence[str], header: int, shown: Sequence[str]) -> list[str]:
    """Lines below the header of a block, closed as the file closes the block."""
    depth = columns(lines[header])
    below = (line for line in lines[header + 1 :] if line.strip() and columns(line) <= depth)
    closer = next(below, "")
    return [lines[header], *shown, *([closer] if closer and _is_end(closer) else [])]


def _has_twin(lines: Sequence[str], header: int) -> bool:
    """Whether another line of the header's depth begins with its word: another such block."""
    depth, word = columns(lines[header]), lines[header].split()[0]
    return any(
        columns(line) == depth and line.split()[:1] == [word]
        for place, line in enumerate(lines)
        if place != header
    )
