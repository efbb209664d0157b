"""Reads an update whose definitions stand in another order than the file's as a move."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from apply_service.edit.place.candidates.original_facts import Definition, OriginalFacts
from apply_service.edit.read.marker_scan import MarkerScan
from apply_service.edit.text.alignment import longest_rising
from apply_service.edit.text.block_bounds import columns
from apply_service.edit.text.definition_names import definition_name


@dataclass(frozen=True, slots=True)
class Move:
    """An update with the whole text of definitions that move, and what goes where they stood.

    `new_lines` are the numbers of the update's lines, from 1, that stand there newly.
    """

    lines: list[str]
    new_lines: frozenset[int]
    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Sent:
    """A definition of the original in lines [start, end) of the update; `marker` cuts its body."""

    definition: Definition
    start: int
    end: int
    marker: int | None


def moves_of(
    update_lines: Sequence[str], original: OriginalFacts, scan: MarkerScan
) -> Iterator[Move]:
    """The ways to read the update as a move: the fewest definitions that are out of order."""
    sent = list(_sent_definitions(update_lines, original, scan))
    headers = [one.definition.header for one in sent]
    if all(low < high for low, high in pairwise(headers)):
        return
    everything = frozenset(range(len(sent)))
    too_early = [one for one in everything if min(headers[one:]) < headers[one]]
    found = [*(everything - rising for rising in _risings(headers)), frozenset(too_early)]
    for moved in dict.fromkeys(found):
        yield _move(update_lines, [sent[place] for place in sorted(moved)], original)


def _sent_definitions(
    lines: Sequence[str], original: OriginalFacts, scan: MarkerScan
) -> Iterator[_Sent]:
    """Definitions that the file has once, with the lines that the update shows of them."""
    known = {one.name: one for one in original.definitions if original.names[one.name] == 1}
    least = min((columns(line) for line in lines if line.strip()), default=0)
    row = 0
    while row < len(lines):
        line = lines[row]
        name = definition_name(line) if line.strip() and columns(line) == least else None
        definition = None if name is None else known.get(name)
        if definition is None:
            row += 1
            continue
        end = row + 1
        while end < len(lines) and (not lines[end].strip() or columns(lines[end]) > least):
            end += 1
        markers = [one for one in range(row + 1, end) if scan.is_marker(lines[one])]
        while not lines[end - 1].strip():
            end -= 1
        if end < len(lines) and lines[end].strip() in ("}", "};", "end", "})", "});"):
            end += 1
        if len(markers) <= 1:
            yield _Sent(definition, row, end, markers[0] if markers else None)
        row = end


def _move(lines: Sequence[str], moved: Sequence[_Sent], original: OriginalFacts) -> Move:
    written: list[str] = []
    new: set[int] = set()
    place = 0
    for one in moved:
        written += lines[place : one.start]
        first = len(written) + 1
        if one.marker is None:
            written += lines[one.start : one.end]
        else:
            start, end = (
                original.numbers[one.definition.start],
                original.numbers[one.definition.end - 1] + 1,
            )
            written += original.all_lines[start:end]
        new |= set(range(first, len(written) + 1))
        place = one.end
    written += lines[place:]
    return Move(written, frozenset(new), tuple(one.definition.name for one in moved))


def _risings(numbers: Sequence[int]) -> Iterator[frozenset[int]]:
    """The places of a longest rising subsequence, looked for from the start and from the end."""
    places = list(enumerate(numbers))
    yield frozenset(place for _, place in longest_rising([(one, at) for at, one in places]))
    turned = [(-one, at) for at, one in reversed(places)]
    yield frozenset(place for _, place in longest_rising(turned))
