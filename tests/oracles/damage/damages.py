"""Damage to correct merges, as models do it. A function of a generator and the truth each.

The lines of a wrong result come back, or None where there is nothing of the kind to break; now and
then they are the truth all the same. What only loses lines stands in `losses`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from oracles.damage import losses
from oracles.damage.truth import IMPORT, Truth, cut, random_untouched

from apply_service.edit.read.markers import MarkerReader

Damage = Callable[[random.Random, Truth], list[str] | None]

_LITERAL = re.compile(r"\b\d+\b|(?<=[\"'])[A-Za-z]\w+(?=[\"'])|\b(?:True|False|true|false)\b")
_IDENTIFIER = re.compile(r"\b[A-Za-z_]\w{3,}\b")
_FLIPPED = {"True": "False", "False": "True", "true": "false", "false": "true"}


def duplicate_block(generator: random.Random, truth: Truth) -> list[str] | None:
    """A block is written twice."""
    length = min(generator.randint(3, 12), len(truth.expected))
    place = generator.randrange(len(truth.expected) - length + 1) if length else 0
    return truth.expected[: place + length] + truth.expected[place:]


def leave_marker(generator: random.Random, truth: Truth) -> list[str] | None:
    """A marker of the update stands beside the code that it stands for."""
    if not truth.markers:
        return None
    place = generator.randint(0, len(truth.expected))
    return cut(truth.expected, place, place, generator.choice(truth.markers))


def marker_for_code(generator: random.Random, truth: Truth) -> list[str] | None:
    """A marker of the update stands in the place of the code that it stands for."""
    place = random_untouched(generator, truth)
    if place is None or not truth.markers:
        return None
    end = min(place + generator.randint(2, 30), len(truth.expected))
    return cut(truth.expected, place, end, generator.choice(truth.markers))


def _moved(generator: random.Random, truth: Truth, max_distance: int) -> list[str] | None:
    """The new lines of an insertion at another place, at most so many lines away."""
    insertions = [hunk for hunk in truth.hunks if hunk.old_start == hunk.old_end]
    if not insertions:
        return None
    hunk = generator.choice(insertions)
    moved = truth.expected[hunk.new_start : hunk.new_end]
    rest = cut(truth.expected, hunk.new_start, hunk.new_end)
    low, high = max(0, hunk.new_start - max_distance), hunk.new_start + max_distance
    places = [place for place in range(low, min(high, len(rest)) + 1) if place != hunk.new_start]
    if not places:
        return None
    place = generator.choice(places)
    return cut(rest, place, place, *moved)


def insert_near(generator: random.Random, truth: Truth) -> list[str] | None:
    """An insertion a few lines away from its place."""
    return _moved(generator, truth, 6)


def insert_far(generator: random.Random, truth: Truth) -> list[str] | None:
    """An insertion anywhere else."""
    return _moved(generator, truth, len(truth.expected))


def swap_lines(generator: random.Random, truth: Truth) -> list[str] | None:
    """Two neighbouring lines change places."""
    if len(truth.expected) < 2:
        return None
    place = generator.randrange(len(truth.expected) - 1)
    pair = truth.expected[place : place + 2]
    return cut(truth.expected, place, place + 2, *reversed(pair))


def change_literal(generator: random.Random, truth: Truth) -> list[str] | None:
    """A number, a word in quotes or a truth value of an untouched line is another."""
    place = random_untouched(generator, truth, _LITERAL)
    if place is None:
        return None
    line = truth.expected[place]
    match = generator.choice(list(_LITERAL.finditer(line)))
    word = match[0]
    new = str(int(word) + 1) if word.isdecimal() else _FLIPPED.get(word, word + "s")
    return cut(truth.expected, place, place + 1, line[: match.start()] + new + line[match.end() :])


def rename_identifier(generator: random.Random, truth: Truth) -> list[str] | None:
    """A name is another in one untouched line."""
    place = random_untouched(generator, truth, _IDENTIFIER)
    if place is None:
        return None
    line = truth.expected[place]
    match = generator.choice(list(_IDENTIFIER.finditer(line)))
    new = match[0][:-1] if generator.random() < 0.5 else match[0] + "_new"
    return cut(truth.expected, place, place + 1, line[: match.start()] + new + line[match.end() :])


def rename_everywhere(generator: random.Random, truth: Truth) -> list[str] | None:
    """A name that the update does not have is another in the whole file."""
    place = random_untouched(generator, truth, _IDENTIFIER)
    if place is None:
        return None
    name = generator.choice(_IDENTIFIER.findall(truth.expected[place]))
    if any(name in line for line in truth.update):
        return None
    return [re.sub(rf"\b{name}\b", name + "2", line) for line in truth.expected]


def reindent(generator: random.Random, truth: Truth) -> list[str] | None:
    """One to eight lines have another indentation."""
    start = generator.randrange(max(1, len(truth.expected)))
    end = start + generator.randint(1, 8)
    is_out = generator.random() < 0.4
    lines = [
        re.sub(r"^(?: {1,4}|\t)", "", line) if is_out else "    " + line if line.strip() else line
        for line in truth.expected[start:end]
    ]
    return cut(truth.expected, start, end, *lines)


def reindent_new_lines(generator: random.Random, truth: Truth) -> list[str] | None:
    """All lines of a hunk have another indentation."""
    hunks = [hunk for hunk in truth.hunks if hunk.new_start < hunk.new_end]
    if not hunks:
        return None
    hunk = generator.choice(hunks)
    new = truth.expected[hunk.new_start : hunk.new_end]
    lines = ["  " + line if line.strip() else line for line in new]
    return cut(truth.expected, hunk.new_start, hunk.new_end, *lines)


def add_blank_line(generator: random.Random, truth: Truth) -> list[str] | None:
    """A blank line is there that nobody wrote."""
    place = generator.randint(0, len(truth.expected))
    return cut(truth.expected, place, place, "")


def keep_deleted(generator: random.Random, truth: Truth) -> list[str] | None:
    """Lines that should go are still there, before or after what takes their place."""
    hunks = [hunk for hunk in truth.hunks if hunk.old_start < hunk.old_end]
    if not hunks:
        return None
    hunk = generator.choice(hunks)
    place = hunk.new_start if generator.random() < 0.5 else hunk.new_end
    return cut(truth.expected, place, place, *truth.original[hunk.old_start : hunk.old_end])


def apply_twice(generator: random.Random, truth: Truth) -> list[str] | None:
    """The new lines of a hunk are there twice."""
    hunks = [hunk for hunk in truth.hunks if hunk.new_start < hunk.new_end]
    if not hunks:
        return None
    hunk = generator.choice(hunks)
    new = truth.expected[hunk.new_start : hunk.new_end]
    return cut(truth.expected, hunk.new_end, hunk.new_end, *new)


def resume_early(generator: random.Random, truth: Truth) -> list[str] | None:
    """After a change the original goes on some lines too early, which repeats them."""
    hunk = generator.choice(truth.hunks) if truth.hunks else None
    if hunk is None or hunk.old_end == 0:
        return None
    start = max(0, hunk.old_end - generator.randint(1, 12))
    repeated = truth.original[start : hunk.old_end]
    return cut(truth.expected, hunk.new_end, hunk.new_end, *repeated)


def invent_import(generator: random.Random, truth: Truth) -> list[str] | None:
    """An import that nobody asked for."""
    places = [place for place, line in enumerate(truth.expected) if IMPORT.match(line)]
    place = generator.choice(places) if places else 0
    return cut(truth.expected, place, place, "import invented_module")


def loop(generator: random.Random, truth: Truth) -> list[str] | None:
    """The last lines are written over and over again."""
    period = generator.randint(1, 4)
    return [*truth.expected, *truth.expected[-period:] * generator.randint(3, 30)]


def return_update(_generator: random.Random, truth: Truth) -> list[str] | None:
    """The update comes back as it is, markers included."""
    return list(truth.update)


def return_segments(_generator: random.Random, truth: Truth) -> list[str] | None:
    """The update comes back without its markers."""
    reader = MarkerReader(truth.original)
    return [line for line in truth.update if reader.read(line) is None]


DAMAGES: tuple[Damage, ...] = (
    losses.drop_import,
    losses.drop_function,
    losses.drop_line,
    losses.drop_lines,
    losses.drop_new_line,
    duplicate_block,
    leave_marker,
    marker_for_code,
    losses.truncate,
    losses.truncate_in_line,
    insert_near,
    insert_far,
    swap_lines,
    change_literal,
    rename_identifier,
    rename_everywhere,
    reindent,
    reindent_new_lines,
    losses.lose_last_lines,
    losses.lose_last_blank_lines,
    losses.lose_blank_line,
    add_blank_line,
    losses.skip_change,
    losses.skip_hunk,
    keep_deleted,
    apply_twice,
    losses.resume_late,
    resume_early,
    losses.lose_closing,
    invent_import,
    loop,
    return_update,
    return_segments,
)
