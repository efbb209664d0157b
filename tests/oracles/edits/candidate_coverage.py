"""How often the right merge is among the candidates of all segments. By hand.

`python tests/oracle.py edits.candidate_coverage FILE…` looks for a way from the original to the
expected text: candidates that do not overlap, one a segment, with the lines between them kept as
they are or moved as a whole. Blank lines do not count. `--misses OUT` lists the cases without one;
not for cases that nobody may read.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from apply_service.edit.place.candidates.candidate import Candidate
from apply_service.edit.place.candidates.candidate_source import candidates_of
from apply_service.edit.place.candidates.filled_lines import FilledLines, moved
from apply_service.edit.place.candidates.rows import Row, rows_of
from apply_service.edit.read.fences import fenced_parts
from apply_service.edit.read.original_index import OriginalIndex
from apply_service.edit.read.readings import readings_of
from apply_service.edit.read.segment import Segment, SegmentLine, Snippet
from apply_service.edit.read.snippet import read_snippet
from apply_service.edit.read.snippet_error import NoMarkerError, SnippetError
from apply_service.edit.syntax.definitions import find_definitions
from apply_service.edit.syntax.languages import language_of
from apply_service.edit.syntax.syntax import parse
from apply_service.edit.text.text_file import split_lines
from apply_service.evaluate.cases.case_file import Case, read_cases

# Segments that may stand in another order than the file has them.
MAX_REORDERED = 7
MAX_MOVE = 8


class Part:
    """One segment or removal: its candidates, by the line where they begin, and their lines."""

    def __init__(
        self,
        original: FilledLines,
        rows: Sequence[Row],
        candidates: Sequence[Candidate],
        marker_indent: int | None,
    ) -> None:
        self.marker_indent = marker_indent
        self.num_candidates = len(candidates)
        self.by_start: dict[int, list[tuple[Candidate, list[str]]]] = defaultdict(list)
        for candidate in candidates:
            written = candidate.written(rows, original)
            self.by_start[candidate.start].append((candidate, written))


def parts_of(original: FilledLines, snippet: Snippet, case: Case) -> list[Part]:
    """The segments and removals of an update in its order."""
    parts: list[Part] = []
    last = len(snippet.segments)
    for number in range(last + 1):
        for removal in snippet.removals:
            if removal.before_segment == number:
                spans = list(_named_spans(original, removal.name, case))
                parts.append(Part(original, [], spans, None))
        if number < last:
            segment = snippet.segments[number]
            rows = rows_of(segment, snippet.format)
            if rows:
                found = candidates_of(
                    original,
                    rows,
                    opens_file=number == 0 and not segment.has_gap_before,
                    closes_file=number == last - 1 and not segment.has_gap_after,
                )
                parts.append(Part(original, rows, found, segment.next_indent))
    return parts


def _named_spans(original: FilledLines, name: str, case: Case) -> Iterator[Candidate]:
    lines, _ = split_lines(case.original)
    tree = parse(lines, language_of(case.path, case.language, lines))
    filled = {number: place for place, number in enumerate(original.numbers)}
    for symbol in tree.symbols if tree else find_definitions(lines):
        if symbol.name == name.rpartition(".")[2]:
            inside = [filled[line] for line in range(symbol.start, symbol.end) if line in filled]
            if inside:
                yield Candidate(start=inside[0], end=inside[-1] + 1)


class Search:
    """Whether a way through the candidates gives a text."""

    def __init__(self, original: FilledLines, parts: Sequence[Part], expected: Sequence[str]):
        self._original = original
        self._parts = parts
        self._expected = list(expected)
        self._seen: set[tuple[int, int, int, int]] = set()
        self._may_reorder = len(parts) <= MAX_REORDERED

    def is_possible(self) -> bool:
        """True if there is a way."""
        return self._go(0, 0, 0, -1)

    def _go(self, line: int, read: int, used: int, last: int) -> bool:
        if used == (1 << len(self._parts)) - 1:
            return self._original.lines[line:] == self._expected[read:]
        key = (line, read, used, last)
        if key in self._seen:
            return False
        self._seen.add(key)
        for columns in self._moves(line, last):
            length = self._num_equal(line, read, columns)
            for number, part in enumerate(self._parts):
                if used >> number & 1:
                    continue
                for start in range(line, line + length + 1):
                    for candidate, written in part.by_start.get(start, ()):
                        at = read + start - line
                        if self._expected[at : at + len(written)] != written:
                            continue
                        behind = at + len(written)
                        if self._go(candidate.end, behind, used | 1 << number, number):
                            return True
                if not self._may_reorder:
                    break
        return False

    def _moves(self, line: int, last: int) -> list[int]:
        """By how many columns the lines under the marker behind part `last` may be moved."""
        if last < 0 or line >= len(self._original):
            return [0]
        indent, marker = self._original.indents[line], self._parts[last].marker_indent
        moves = [0] if marker is None else [0, marker - indent]
        unit = 4 if "\t" in self._original.lines[line] else 2
        moves += [unit, -unit, 4, -4]
        return [move for move in dict.fromkeys(moves) if abs(move) <= MAX_MOVE]

    def _num_equal(self, line: int, read: int, columns: int) -> int:
        length = 0
        while line + length < len(self._original) and read + length < len(self._expected):
            if moved(self._original.lines[line + length], columns) != self._expected[read + length]:
                break
            length += 1
        return length


def covers(case: Case) -> tuple[bool, int]:
    """Whether a right merge is among the candidates of any reading, and how many they are."""
    lines, _ = split_lines(case.original)
    original = FilledLines(lines)
    language = language_of(case.path, case.language, lines)
    num_candidates = 0
    sent, _ = split_lines(case.update)
    for update in readings_of(sent, OriginalIndex(lines), language=language):
        try:
            snippet = read_snippet(update, lines, path=case.path, language=case.language)
        except NoMarkerError:
            snippet = one_segment(update, original, case)
        except SnippetError:
            continue
        parts = parts_of(original, snippet, case)
        num_candidates += sum(part.num_candidates for part in parts)
        for result in case.results:
            expected = [line.rstrip() for line in result.split("\n") if line.strip()]
            if Search(original, parts, expected).is_possible():
                return True, num_candidates
    return False, num_candidates


def one_segment(update: Sequence[str], original: FilledLines, case: Case) -> Snippet:
    """All lines of an update as one part of the file."""
    parts = fenced_parts(update, original.counts, path=case.path, language=case.language)
    shown = [SegmentLine(update[line], line + 1) for part in parts for line in range(*part)]
    return Snippet(format="fragment", segments=(Segment(lines=tuple(shown)),))


def main() -> int:
    """Print a line a file and kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--misses", type=Path)
    chosen = parser.parse_args()
    sys.setrecursionlimit(10_000)
    missed: list[dict[str, str]] = []
    for path in chosen.files:
        kinds: Counter[str] = Counter()
        right: Counter[str] = Counter()
        num_candidates, began = 0, time.perf_counter()
        for case in read_cases(path):
            if case.must_refuse and not case.also:
                continue
            is_covered, found = covers(case)
            num_candidates += found
            for kind in ("all", case.style or ""):
                kinds[kind] += 1
                right[kind] += is_covered
            if not is_covered:
                missed.append({"file": path.name, "id": case.id, "kind": case.style or ""})
        seconds = (time.perf_counter() - began) / max(kinds["all"], 1)
        mean = num_candidates / max(kinds["all"], 1)
        print(f"{path.name}: {seconds * 1000:.0f} ms and {mean:.0f} candidates a case")
        for kind in sorted(kinds, key=lambda name: -kinds[name]):
            share = right[kind] / kinds[kind]
            print(f"  {kind:20} {right[kind]:4} of {kinds[kind]:4} {share:7.1%}", flush=True)
    if chosen.misses:
        chosen.misses.write_text("".join(json.dumps(miss) + "\n" for miss in missed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
