"""Updates without markers that rewrite consecutive lines and begin or end with a changed one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from apply_service.edit.read.original_index import is_telling
from apply_service.edit.text.brackets import balance_of
from apply_service.edit.text.definition_names import MAX_LINE_LENGTH, definition_name
from apply_service.edit.text.line_index import LineIndex, indent_of
from apply_service.edit.text.similarity import MIN_SIMILARITY, SAME_KEY_RATIO, Similarity, likeness

# Longer updates are not looked for.
MAX_ROWS = 80
# Places of a border, and pairs of places, that are looked at; of more none is certain.
MAX_PLACES = 16
MAX_TRIED = 8
# Lines of the original beyond as many as the update has.
MAX_MORE_LINES = 4
# Changed lines that are compared for one place: rows times lines.
MAX_COMPARED = 64
# In longer files no line is looked for that is like a changed one.
MAX_SEARCHED = 2_000
# The share of the update's lines that have a counterpart.
MIN_PAIRED_SHARE = 0.5
# What another place may have of the evidence for the best one.
MAX_RIVAL_SHARE = 0.5
# What a changed line tells, compared with an equal one.
CHANGED_SHARE = 0.6
# Lines this near to a changed one that are like it as well make it one of a list.
KIN_LINES = 12
# Statements that give nothing a value, whatever signs they have.
_STATEMENT = re.compile(
    r"(?:return|if|elif|else|for|foreach|while|switch|assert|raise|throw|yield|import|from|use)\b"
)
_LEFT_SIDE = re.compile(
    r"(?P<name>(?P<quote>[\"'`]).*?(?P=quote)|(?![\"'`])[^=:({]*[^=:({\s])"
    r"\s*(?:=>|:=|[:=])(?![=:])"
)

Pair = tuple[int, int, float]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Lines `[start, end)` of the original that an update rewrites.

    `evidence` is the weight of the lines that are equal or alike. `is_certain` says that the
    borders are equal or give the same names a value.
    """

    start: int
    end: int
    evidence: float
    is_certain: bool = False


class ChangedStretch:
    """Finds the lines that an update, given by its `texts`, rewrites."""

    def __init__(self, texts: Sequence[str], index: LineIndex) -> None:
        self._texts = [text for text in texts if text.strip()]
        self._stripped = [text.strip() for text in self._texts]
        self._index = index
        self._similarity = Similarity(index.stripped)
        self._alike: dict[int, list[int]] = {}

    def find(self) -> Stretch | None:
        """The only stretch whose lines the update matches in order with none left over, or None.

        None as well if both borders stand in the original: then they are context.
        """
        if not 0 < len(self._stripped) <= MAX_ROWS:
            return None
        if all(self._index.places(self._stripped[row]) for row in (0, -1)):
            return None
        spans = self._spans()
        tried = [self._try_stretch(*span) for span in spans] if len(spans) <= MAX_TRIED else []
        found = sorted((one for one in tried if one), key=lambda one: -one.evidence)
        if not found:
            return None
        if found[1:] and found[1].evidence > MAX_RIVAL_SHARE * found[0].evidence:
            return None
        return found[0]

    def _spans(self) -> list[tuple[int, int]]:
        """Spans that the update may rewrite, not much longer than the update."""
        last_row = len(self._stripped) - 1
        firsts = self._places(0)
        lasts = self._places(last_row) if last_row else firsts
        max_lines = len(self._stripped) + MAX_MORE_LINES
        return [
            (first, last + 1)
            for first in firsts
            for last in lasts
            if (first < last if last_row else first == last)
            and self._index.num_filled(first, last + 1) <= max_lines
        ]

    def _places(self, row: int) -> Sequence[int]:
        """Places of a row in the original.

        If there are none, the lines that give its name a value, or else similar lines nearby.
        """
        text = self._stripped[row]
        known = self._index.places(text) or self._named.get(_left_side(text), ())
        if known:
            return known if len(known) <= MAX_PLACES else ()
        anchor = min(self._anchors, key=lambda one: abs(one[0] - row), default=None)
        if anchor is None:
            return self._only_like(row)
        reach = abs(anchor[0] - row) + MAX_MORE_LINES
        lines = self._index.stripped
        near = range(max(0, anchor[1] - reach), min(len(lines), anchor[1] + reach + 1))
        ratio = self._similarity.ratio
        return [place for place in near if ratio(lines[place], text) >= MIN_SIMILARITY]

    @cached_property
    def _anchors(self) -> list[tuple[int, int]]:
        """Rows that stand in the original once, with their places."""
        places = [(row, self._index.places(text)) for row, text in enumerate(self._stripped)]
        return [(row, found[0]) for row, found in places if len(found) == 1 and self._tells(row)]

    @cached_property
    def _named(self) -> dict[str | None, list[int]]:
        """The lines that give each name a value or define it."""
        named: dict[str | None, list[int]] = {}
        for place, text in enumerate(self._index.stripped):
            name = _left_side(text)
            if name is not None:
                named.setdefault(name, []).append(place)
        return named

    def _try_stretch(self, start: int, end: int) -> Stretch | None:
        """Lines `[start, end)`, if the update accounts for each of them without oddities."""
        lines = [line for line in self._index.lines[start:end] if line.strip()]
        old, new = [line.strip() for line in lines], self._stripped
        pairs = self._similarity.aligned(old, new, limit=MAX_COMPARED)
        if (
            len(pairs) < max(1, MIN_PAIRED_SHARE * len(new))
            or pairs[0][:2] != (0, 0)
            or pairs[-1][:2] != (len(old) - 1, len(new) - 1)
            or not all(map(_is_accounted, pairs, pairs[1:]))
            or not any(self._is_lone(row) or self._only_like(row) for _, row, _ in pairs)
            or balance_of(old) != balance_of(new)
            or any(old[place].endswith(":") != new[row].endswith(":") for place, row, _ in pairs)
            or not self._is_shifted_evenly(lines, pairs)
        ):
            return None
        evidence = sum(
            self._index.weight(old[place]) * (1.0 if ratio == 1.0 else CHANGED_SHARE)
            for place, _, ratio in pairs
        )
        is_even = len(pairs) == len(old) == len(new)
        borders = ((0, start), (len(new) - 1, end - 1))
        is_certain = all(self._is_same(*border, is_even=is_even) for border in borders)
        return Stretch(start, end, evidence, is_certain)

    def _is_shifted_evenly(self, lines: Sequence[str], pairs: Sequence[Pair]) -> bool:
        """True if rows are indented as their lines, or all by one shift that an equal row has."""
        shifts = {
            len(indent_of(lines[place])) - len(indent_of(self._texts[row]))
            for place, row, _ in pairs
        }
        return shifts == {0} or (
            len(shifts) == 1 and any(ratio == 1.0 and self._tells(row) for _, row, ratio in pairs)
        )

    def _is_same(self, row: int, place: int, *, is_even: bool) -> bool:
        """True if a row equals a line, or if nearby only that line gives the row's name a value.

        Where all lines have their counterpart (`is_even`), being merely similar is enough.
        """
        text, lines = self._stripped[row], self._index.stripped
        if text == lines[place]:
            return True
        near = range(max(0, place - KIN_LINES), min(len(lines), place + KIN_LINES + 1))
        if [one for one in self._named.get(_left_side(text), ()) if one in near] == [place]:
            return True
        ratio = self._similarity.ratio
        if not is_even or ratio(lines[place], text) < SAME_KEY_RATIO:
            return False
        return likeness(lines[place], text) >= MIN_SIMILARITY and not any(
            ratio(lines[one], text) >= MIN_SIMILARITY for one in near if one != place
        )

    def _is_lone(self, row: int) -> bool:
        """True if no other line of the original is the row or gives its name a value."""
        text = self._stripped[row]
        places = self._index.places(text)
        if places:
            return len(places) == 1 and self._tells(row)
        return len(self._named.get(_left_side(text), ())) == 1

    def _only_like(self, row: int) -> list[int]:
        """The place of the only line similar to a row; nothing if there are several or too many."""
        text, lines = self._stripped[row], self._index.stripped
        if not self._tells(row) or len(lines) > MAX_SEARCHED:
            return []
        if row not in self._alike:
            ratio = self._similarity.ratio
            found = (
                place for place, line in enumerate(lines) if ratio(line, text) >= MIN_SIMILARITY
            )
            self._alike[row] = list(islice(found, 2))
        places = self._alike[row]
        return places if len(places) == 1 else []

    def _tells(self, row: int) -> bool:
        return is_telling(self._stripped[row])


def _left_side(text: str) -> str | None:
    """The name that a line defines or gives a value, as the line writes it, or None."""
    name = definition_name(text)
    if name is not None or _STATEMENT.match(text):
        return name
    match = _LEFT_SIDE.match(text[:MAX_LINE_LENGTH])
    if match is None:
        return None
    return match["name"] if match["quote"] else match["name"].split()[-1]


def _is_accounted(left: Pair, right: Pair) -> bool:
    """True if old lines between two pairs are replaced by as many new ones between equal lines."""
    num_old, num_new = right[0] - left[0] - 1, right[1] - left[1] - 1
    return not num_old or (num_old <= num_new and left[2] == right[2] == 1.0)
