"""Damage by loss: lines that a wrong result lacks. A function of a generator and the truth each.

None comes back where there is nothing of the kind to lose.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from oracles.damage.truth import IMPORT, Truth, cut, random_untouched

MAX_TRIES = 20

_HEADER = re.compile(
    r"\s*(?:export |default |pub |public |private |protected |static |async |abstract )*"
    r"(?:def|class|function|fn|func|interface|struct|enum|impl|type|trait)\s+\w+"
)
_CLOSING = re.compile(r"\s*(?:[)\]}]+[;,]?|</\w+>|end)\s*")


def drop_import(generator: random.Random, truth: Truth) -> list[str] | None:
    """An import of the original is gone."""
    places = [place for place in truth.untouched if IMPORT.match(truth.expected[place])]
    if not places:
        return None
    place = generator.choice(places)
    return cut(truth.expected, place, place + 1)


def drop_function(generator: random.Random, truth: Truth) -> list[str] | None:
    """A definition that the edit does not touch is gone."""
    headers = [place for place in truth.untouched if _HEADER.match(truth.expected[place])]
    untouched = set(truth.untouched)
    for place in generator.sample(headers, len(headers))[:MAX_TRIES]:
        end = _block_end(truth.expected, place)
        filled = [row for row in range(place, end) if truth.expected[row].strip()]
        if end - place > 1 and untouched.issuperset(filled):
            return cut(truth.expected, place, end)
    return None


def drop_line(generator: random.Random, truth: Truth) -> list[str] | None:
    """One untouched line is gone."""
    place = random_untouched(generator, truth)
    return None if place is None else cut(truth.expected, place, place + 1)


def drop_lines(generator: random.Random, truth: Truth) -> list[str] | None:
    """Two to six lines in a row are gone, wherever they are."""
    if len(truth.expected) < 4:
        return None
    length = generator.randint(2, min(6, len(truth.expected) - 1))
    place = generator.randrange(len(truth.expected) - length + 1)
    return cut(truth.expected, place, place + length)


def drop_new_line(generator: random.Random, truth: Truth) -> list[str] | None:
    """One line that the edit brings in is missing."""
    places = [
        place
        for hunk in truth.hunks
        for place in range(hunk.new_start, hunk.new_end)
        if truth.expected[place].strip()
    ]
    if not places:
        return None
    place = generator.choice(places)
    return cut(truth.expected, place, place + 1)


def truncate(generator: random.Random, truth: Truth) -> list[str] | None:
    """The result ends too early."""
    if len(truth.expected) < 2:
        return None
    return truth.expected[: generator.randrange(1, len(truth.expected))]


def truncate_in_line(generator: random.Random, truth: Truth) -> list[str] | None:
    """The result ends too early, within a line."""
    place = random_untouched(generator, truth)
    if place is None:
        return None
    line = truth.expected[place]
    return [*truth.expected[:place], line[: generator.randrange(1, len(line) + 1)]]


def lose_last_lines(_generator: random.Random, truth: Truth) -> list[str] | None:
    """The last filled line and the blank lines after it are gone."""
    num_lines = len(truth.expected)
    while num_lines and not truth.expected[num_lines - 1].strip():
        num_lines -= 1
    return truth.expected[: num_lines - 1] if num_lines > 1 else None


def lose_last_blank_lines(_generator: random.Random, truth: Truth) -> list[str] | None:
    """Blank lines at the end of the file are gone."""
    num_lines = len(truth.expected)
    while num_lines and not truth.expected[num_lines - 1].strip():
        num_lines -= 1
    return truth.expected[:num_lines]


def lose_blank_line(generator: random.Random, truth: Truth) -> list[str] | None:
    """A blank line is gone."""
    places = [place for place, line in enumerate(truth.expected) if not line.strip()]
    if not places:
        return None
    place = generator.choice(places)
    return cut(truth.expected, place, place + 1)


def skip_change(_generator: random.Random, truth: Truth) -> list[str] | None:
    """The original comes back."""
    return list(truth.original)


def skip_hunk(generator: random.Random, truth: Truth) -> list[str] | None:
    """One of several changes was not made."""
    if len(truth.hunks) < 2:
        return None
    hunk = generator.choice(truth.hunks)
    old = truth.original[hunk.old_start : hunk.old_end]
    return cut(truth.expected, hunk.new_start, hunk.new_end, *old)


def resume_late(generator: random.Random, truth: Truth) -> list[str] | None:
    """After a change the original goes on some lines too late."""
    hunk = generator.choice(truth.hunks) if truth.hunks else None
    if hunk is None or hunk.new_end == len(truth.expected):
        return None
    end = min(hunk.new_end + generator.randint(1, 12), len(truth.expected))
    return cut(truth.expected, hunk.new_end, end)


def lose_closing(generator: random.Random, truth: Truth) -> list[str] | None:
    """A line with a closing bracket or tag is gone."""
    places = [place for place, line in enumerate(truth.expected) if _CLOSING.fullmatch(line)]
    if not places:
        return None
    place = generator.choice(places)
    return cut(truth.expected, place, place + 1)


def _block_end(lines: Sequence[str], start: int) -> int:
    """Where the block under the header at `start` ends, by indentation."""
    depth = len(lines[start]) - len(lines[start].lstrip())
    end = start + 1
    for place in range(start + 1, len(lines)):
        line = lines[place]
        if not line.strip():
            continue
        is_inside = len(line) - len(line.lstrip()) > depth
        if not is_inside and not _CLOSING.fullmatch(line):
            break
        end = place + 1
        if not is_inside:
            break
    return end
