"""A marker-less update of consecutive lines of the file that begins or ends with a changed one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property

from apply_service.edit.balance import balance_of
from apply_service.edit.definition_names import MAX_LINE_LENGTH, definition_name
from apply_service.edit.line_index import LineIndex, indent_of
from apply_service.edit.original_index import is_telling
from apply_service.edit.similarity import MIN_SIMILARITY, SAME_KEY_RATIO, Similarity

# Longer updates are not looked for.
MAX_ROWS = 80
# Places of each border that are tried with one another.
MAX_PLACES = 16
# Lines of the original beyond as many as the update has.
MAX_MORE_LINES = 4
# The share of the update's lines that have a counterpart.
MIN_PAIRED_SHARE = 0.5
# What another place may have of the evidence for the best one.
MAX_RIVAL_SHARE = 0.5
# Lines this near to a changed one that are like it as well make it one of a list.
KIN_LINES = 12
# What a changed line tells, compared with an equal one.
CHANGED_SHARE = 0.6

# Lines that give nothing a value, whatever signs they have.
_STATEMENT = re.compile(
    r"(?:return|if|elif|else|for|foreach|while|switch|assert|raise|throw|yield|import|from|use)\b"
)
_LEFT_SIDE = re.compile(
    r"(?P<name>(?P<quote>[\"'`]).*?(?P=quote)|[^=:({]*[^=:({\s])\s*(?:=>|:=|[:=])(?![=:])"
)

_Pair = tuple[int, int, float]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Lines `[start, end)` of the original, of which an update is a new version.

    `is_certain` says that its first and its last line are there too, or others for their names.
    """

    start: int
    end: int
    evidence: float
    is_certain: bool


class ChangedStretch:
    """Looks for the lines that an update, given by its `texts`, is a new version of."""

    def __init__(self, texts: Sequence[str], index: LineIndex) -> None:
        self._texts = [text for text in texts if text.strip()]
        self._stripped = [text.strip() for text in self._texts]
        self._index = index
        self._similarity = Similarity(index.stripped)

    def find(self) -> Stretch | None:
        """The only stretch that the lines fit in order, nothing left over; None without one.

        If both borders stand in the original they are context, and it is none.
        """
        if not 0 < len(self._stripped) <= MAX_ROWS:
            return None
        if all(self._index.places(self._stripped[row]) for row in (0, -1)):
            return None
        found = sorted(self._stretches(), key=lambda one: -one.evidence)
        rivals = found[1:2]
        if not found or any(
            one.evidence > MAX_RIVAL_SHARE * found[0].evidence for one in rivals
        ):
            return None
        return found[0]

    def _stretches(self) -> Iterator[Stretch]:
        size = len(self._stripped)
        for first in self._places(0):
            for last in self._places(size - 1):
                num_old = self._index.num_filled(first, last + 1)
                if (first == last) == (size == 1) and 0 < num_old <= size + MAX_MORE_LINES:
                    stretch = self._try_stretch(first, last)
                    if stretch is not None:
                        yield stretch

    def _places(self, row: int) -> Sequence[int]:
        """Where the line stands, else where its name gets a value, else lines like it nearby."""
        text = self._stripped[row]
        equal = self._index.places(text) or self._named.get(_left_side(text), ())
        if equal:
            return equal[:MAX_PLACES]
        near = {
            place
            for anchor, stands_at in self._anchors
            for place in range(
                stands_at - abs(anchor - row) - MAX_MORE_LINES,
                stands_at + abs(anchor - row) + MAX_MORE_LINES,
            )
        }
        return [
            place
            for place in sorted(near & set(range(len(self._index))))
            if self._similarity.ratio(self._index.stripped[place], text) >= MIN_SIMILARITY
        ][:MAX_PLACES]

    @cached_property
    def _anchors(self) -> list[tuple[int, int]]:
        """The rows that stand in the original once, and where."""
        places = ((row, self._index.places(text)) for row, text in enumerate(self._stripped))
        return [
            (row, found[0])
            for row, found in places
            if len(found) == 1 and is_telling(self._stripped[row])
        ]

    @cached_property
    def _named(self) -> dict[str | None, list[int]]:
        """The lines that give each name a value or define it."""
        named: dict[str | None, list[int]] = {}
        for place, text in enumerate(self._index.stripped):
            name = _left_side(text)
            if name is not None:
                named.setdefault(name, []).append(place)
        return named

    def _try_stretch(self, first: int, last: int) -> Stretch | None:
        """Lines `first` to `last` if each of them has its counterpart in the update."""
        places = [place for place in range(first, last + 1) if self._index.stripped[place]]
        old = [self._index.stripped[place] for place in places]
        pairs = self._similarity.pairs(old, self._stripped)
        size = len(self._stripped)
        if not pairs or pairs[0][:2] != (0, 0) or pairs[-1][:2] != (len(old) - 1, size - 1):
            return None
        if len(pairs) < MIN_PAIRED_SHARE * size or not all(map(_is_accounted, pairs, pairs[1:])):
            return None
        if balance_of(old) != balance_of(self._stripped):
            return None
        if any(
            old[number].endswith(":") != self._stripped[row].endswith(":")
            for number, row, _ in pairs
        ):
            return None
        shifts = {
            len(indent_of(self._index.lines[places[number]])) - len(indent_of(self._texts[new]))
            for number, new, _ in pairs
        }
        is_anchored = any(ratio == 1.0 and is_telling(old[number]) for number, _, ratio in pairs)
        if len(shifts) > 1 or (shifts != {0} and not is_anchored):
            return None
        is_even = len(pairs) == size == len(old)
        is_certain = all(
            self._is_same(row, place) or (is_even and self._is_variant(row, place))
            for row, place in ((0, first), (size - 1, last))
        )
        if not any(self._is_lone(new) for _, new, _ in pairs):
            return None
        evidence = sum(
            self._index.weight(old[number]) * (1.0 if ratio == 1.0 else CHANGED_SHARE)
            for number, _, ratio in pairs
        )
        return Stretch(first, last + 1, evidence, is_certain)

    def _is_same(self, row: int, place: int) -> bool:
        """Whether a row and a line are equal, or alone hereabouts give a name its value."""
        new, old = self._stripped[row], self._index.stripped[place]
        if new == old:
            return True
        near = range(place - KIN_LINES, place + KIN_LINES + 1)
        return [other for other in self._named.get(_left_side(new), ()) if other in near] == [place]

    def _is_variant(self, row: int, place: int) -> bool:
        """Whether a line is much like a row, and no other one near it is like that."""
        ratio, text = self._similarity.ratio, self._stripped[row]
        lines = self._index.stripped
        near = range(max(0, place - KIN_LINES), min(len(lines), place + KIN_LINES + 1))
        by_letters = SequenceMatcher(None, lines[place], text, autojunk=False).ratio()
        if ratio(lines[place], text) < SAME_KEY_RATIO or by_letters < MIN_SIMILARITY:
            return False
        return not any(
            ratio(lines[other], text) >= MIN_SIMILARITY for other in near if other != place
        )

    def _is_lone(self, row: int) -> bool:
        """Whether nothing else of the original is the row or gives its name a value."""
        text = self._stripped[row]
        places = self._index.places(text)
        if places:
            return is_telling(text) and len(places) == 1
        return len(self._named.get(_left_side(text), ())) == 1


def _left_side(text: str) -> str | None:
    """The name that a line defines or gives a value, as it is written there, or None."""
    name = definition_name(text)
    if name is not None or _STATEMENT.match(text):
        return name
    match = _LEFT_SIDE.match(text[:MAX_LINE_LENGTH])
    if match is None:
        return None
    return match["name"] if match["quote"] else match["name"].split()[-1]


def _is_accounted(left: _Pair, right: _Pair) -> bool:
    """Whether the old lines between two pairs give way to as many new ones between equal lines."""
    num_old, num_new = right[0] - left[0] - 1, right[1] - left[1] - 1
    return not num_old or (num_old <= num_new and left[2] == right[2] == 1.0)
