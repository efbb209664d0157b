"""Edits of old strings into new ones, one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import islice

from apply_service.edit.forms.form import StringEdit
from apply_service.edit.forms.reading import FormError, Reading, lines_of, refused, text_of
from apply_service.edit.place.exact_merges import MAX_DOUBTFUL, exact_merges, merge_everywhere
from apply_service.edit.place.merge_findings import anchor_not_found
from apply_service.edit.read.segment import Segment, SegmentLine
from apply_service.edit.text.text_file import MARK
from apply_service.edit.text.work_budget import check_size, spend

# Places of an old string that are looked at, and texts that are kept.
MAX_PLACES, MAX_READINGS = 64, 8
# Finds lines that are like the old ones: the lines, old and new.
SearchAlike = Callable[[tuple[str, ...], Sequence[str], Sequence[str]], list[Reading]]


def string_readings(
    original: tuple[str, ...], edits: Sequence[StringEdit], search_alike: SearchAlike
) -> list[Reading]:
    """The texts that the edits may mean, the likeliest first. Raises FormError."""
    readings = [Reading(original)]
    for number, edit in enumerate(edits, start=1):
        if edit.old == edit.new:
            raise refused(
                "nothing_changed",
                f"the old and the new string of edit {number} are the same",
                "send what the old string becomes",
            )
        found: dict[tuple[str, ...], float] = {}
        for reading in readings:
            for next_one in _replaced(reading.lines, edit, search_alike):
                share = reading.probability * next_one.probability
                found[next_one.lines] = found.get(next_one.lines, 0.0) + share
        if not found:
            raise _not_found(edit, number, readings[0].lines)
        ranked = sorted(found.items(), key=lambda one: -one[1])
        readings = [Reading(*one) for one in ranked[:MAX_READINGS]]
    return readings


def _replaced(lines: tuple[str, ...], edit: StringEdit, search_alike: SearchAlike) -> list[Reading]:
    """The texts after one edit, their probabilities at most 1 together; none without a place."""
    text = text_of(lines)
    if edit.old.startswith(MARK) and edit.old not in text:  # the file's own mark is no text
        edit = StringEdit(edit.old[1:], edit.new.removeprefix(MARK), edit.is_everywhere)
    if not edit.old:
        return [] if lines else [Reading(lines_of(edit.new))]
    spend(len(lines))
    places = list(islice(_places(text, edit.old), MAX_PLACES))
    if places and edit.is_everywhere:
        num_places = text.count(edit.old)
        check_size(
            len(text) + num_places * (len(edit.new) - len(edit.old)),
            len(lines) + num_places * (edit.new.count("\n") - edit.old.count("\n")),
        )
        return [Reading(lines_of(text.replace(edit.old, edit.new)))]
    if places:
        made = (text[:at] + edit.new + text[at + len(edit.old) :] for at in places)
        texts: dict[str, None] = {}
        while len(texts) < MAX_READINGS and (one := next(made, None)) is not None:
            texts[one] = None
        num_meant = len(texts) if next(made, None) is None else len(places)
        return [Reading(lines_of(one), 1 / num_meant) for one in texts]
    old, new = lines_of(edit.old), lines_of(edit.new)
    if edit.is_everywhere:
        everywhere = merge_everywhere(lines, _segment(old, new))
        return [] if everywhere is None else [Reading(everywhere)]
    return _replaced_lines(lines, old, new) or search_alike(lines, old, new)


def _places(text: str, old: str) -> Iterable[int]:
    """All places of a text in another one; they may overlap."""
    place = text.find(old)
    while place >= 0:
        yield place
        place = text.find(old, place + 1)


def _replaced_lines(
    lines: tuple[str, ...], old: Sequence[str], new: Sequence[str]
) -> list[Reading]:
    """The texts where the old lines stand with other white space."""
    if not any(map(str.strip, old)):
        return []
    found = exact_merges(lines, [_segment(old, new)])
    if found is None:
        return []
    share = 1 / len(found.merges) if len(found.merges) > 1 else found.certainty
    return [Reading(merge, share) for merge in found.merges]


def _not_found(edit: StringEdit, number: int, lines: tuple[str, ...]) -> FormError:
    if not edit.old.strip():
        return refused(
            "anchor_not_found",
            f"the old string of edit {number} has no text, and only a new file may have that",
            "send text of the file as old_string, or the whole file as update",
        )
    found = anchor_not_found(_segment(lines_of(edit.old), lines_of(edit.new)), lines)
    after = " after the edits before it" if number > 1 else ""
    message = f"the old string of edit {number} does not stand in the file{after}"
    return FormError(replace(found, message=message))


def _segment(old: Sequence[str], new: Sequence[str]) -> Segment:
    lines = tuple(SegmentLine(text, number) for number, text in enumerate(new, start=1))
    return Segment(lines=lines, old=tuple(old))


def capped(readings: Sequence[Reading]) -> list[Reading]:
    """Readings none of which is certain."""
    most = max((reading.probability for reading in readings), default=0.0)
    scale = min(1.0, MAX_DOUBTFUL / most) if most else 1.0
    return [Reading(reading.lines, reading.probability * scale) for reading in readings]
