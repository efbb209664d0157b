"""Finds where a segment may begin and end, once its lines in the original are known."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence

import msgspec

from apply_service.edit.place.opinion.placement import PlacementReason
from apply_service.edit.text.brackets import BLOCK_OPENERS
from apply_service.edit.text.definition_names import is_attribute
from apply_service.edit.text.line_index import LineIndex, indent_of
from apply_service.edit.text.runs import Run
from apply_service.edit.text.similarity import Similarity
from apply_service.edit.text.word_weights import WordWeights
from apply_service.edit.text.words import begin_alike

# What it costs that a segment begins (or ends) with lines that are not in the original.
OPEN_BORDER_COST = 2.5
# A modified line stands at the border: the odds grow with the similarity around this one.
EVEN_SIMILARITY = 0.68
ALIKE_SLOPE = 8.0
EQUAL_GAIN = 0.3
LOST_COST = 2.0
MAX_HEAD_LINES = 24
MAX_WINDOW = 24
# For using the longest context at a border of the segment.
CONTEXT_BONUS = 8.0
# A line with less of the letters of a telling line may be new even where it matches.
MIN_FULLNESS = 0.6
MAX_TRIMMED = 4
# As many old lines as new ones give way at a border, though they are not alike.
SAME_COUNT_COST = 1.5
MAX_SAME_COUNT = 3
# New lines are set off by a blank line below, but not above.
SLID_COST = 2.0
# New lines take over some of the blank lines beside them, as their kind says or not.
KIN_BONUS = 2.5
DEEPER_BONUS = 1.0
BLANK_COST = 1.5
# Old lines whose words all stand in the new ones, to that share.
MAX_REWRITTEN = 3
MIN_REWRITTEN_SHARE = 0.9
MIN_REWRITTEN_WORDS = 3
REWRITTEN_BONUS = 3.0
_ATTRIBUTES = ("@", "#[", "/**")


class Border(msgspec.Struct, frozen=True, gc=False):
    """A place in the original where a segment may begin or end.

    `is_open`: it stands on new lines, not on lines that are equal.
    """

    place: int
    weight: float
    reason: PlacementReason = "context"
    is_open: bool = False
    max_lost: int = 0


class SegmentBorders:
    """The borders of one segment; `runs` are its lines that stand in the original.

    No line of `new_rows` takes the place of an old one that looks like it.
    """

    def __init__(
        self,
        texts: Sequence[str],
        index: LineIndex,
        *,
        runs: Sequence[Run],
        new_rows: Collection[int] = (),
        similarity: Similarity,
        weights: WordWeights,
    ) -> None:
        self._texts = texts
        self._stripped = [text.strip() for text in texts]
        self._index = index
        self._new_rows = new_rows
        self._similarity = similarity
        self._words = weights
        self._leading = self._context_bonus(runs, is_leading=True)
        self._trailing = self._context_bonus(runs, is_leading=False)
        self._known_lefts: dict[tuple[int, int], list[Border]] = {}
        self._known_rights: dict[tuple[int, int], list[Border]] = {}

    def lefts(self, run: Run) -> list[Border]:
        """Where the segment begins if `run` is the first of its lines that stands there."""
        key = (run.new, run.old)
        if key not in self._known_lefts:
            self._known_lefts[key] = self._left_borders(run)
        return self._known_lefts[key]

    def rights(self, run: Run) -> list[Border]:
        """Where the segment ends if `run` is the last of its lines that stands there."""
        key = (run.new_end, run.old_end)
        if key not in self._known_rights:
            self._known_rights[key] = self._right_borders(run)
        return self._known_rights[key]

    def _left_borders(self, run: Run) -> list[Border]:
        rows = [row for row in range(run.new) if self._stripped[row]]
        if not rows:
            return [Border(run.old, self._leading.get(run, 0.0)), *self._trimmed_left(run)]
        weight = -OPEN_BORDER_COST - (SLID_COST if self._is_slid(run) else 0.0)
        borders = [Border(run.old, weight, is_open=True), *self._trimmed_left(run)]
        borders.extend(self._before_blanks(run))
        if rows[0] in self._new_rows:
            return borders
        head = [self._stripped[row] for row in rows]
        if not run.is_border:
            borders.extend(self._same_count(run.old, -len(head), is_left=True))
        if not run.is_border:
            borders.extend(self._rewritten(run.old, head, -1))
            borders.extend(self._attributes(run.old, head))
        window = self._index.stripped[max(0, run.old - min(len(head) + 4, MAX_WINDOW)) : run.old]
        head = head[-MAX_HEAD_LINES:]
        pairs = self._similarity.pairs(window, head)
        floor = run.old - len(window)
        for number, (old, new, _) in enumerate(pairs):
            inner = [(a - old, b - new, ratio) for a, b, ratio in pairs[number:]]
            weight, lost = self._alike_weight(inner, window[old:], head[new:], new == 0)
            borders.append(_alike_border(floor + old, weight, lost))
        return borders

    def _right_borders(self, run: Run) -> list[Border]:
        rows = [row for row in range(run.new_end, len(self._stripped)) if self._stripped[row]]
        if not rows:
            return [Border(run.old_end, self._trailing.get(run, 0.0)), *self._trimmed_right(run)]
        borders = [Border(run.old_end, -OPEN_BORDER_COST, is_open=True), *self._trimmed_right(run)]
        borders.extend(self._after_blanks(run))
        if rows[-1] in self._new_rows:
            return borders
        tail = [self._stripped[row] for row in rows]
        if not run.is_border:
            borders.extend(self._same_count(run.old_end, len(tail), is_left=False))
        if not run.is_border:
            borders.extend(self._rewritten(run.old_end, tail, 1))
        window = self._index.stripped[run.old_end : run.old_end + min(len(tail) + 4, MAX_WINDOW)]
        pairs = self._similarity.pairs(window, tail[:MAX_HEAD_LINES])
        for number, (old, new, _) in enumerate(pairs):
            inner, at_edge = pairs[: number + 1], new == len(tail) - 1
            weight, lost = self._alike_weight(inner, window[: old + 1], tail[: new + 1], at_edge)
            place = run.old_end + old + 1
            borders.append(_alike_border(place, weight, lost))
        return borders

    def _after_blanks(self, run: Run) -> list[Border]:
        """New lines after a blank line that the original has: the blank line is not repeated."""
        if run.is_border:
            return []
        num_shown = run.new_end
        while num_shown < len(self._stripped) and not self._stripped[num_shown]:
            num_shown += 1
        old_blank = self._index.blank_after(run.old_end)
        below = run.old_end + old_blank
        is_kin = below < len(self._index) and (
            begin_alike(self._stripped[-1], self._index.stripped[below])
            or self._stripped[-1].startswith(_ATTRIBUTES)
        )
        borders: list[Border] = []
        for step in range(1, min(num_shown - run.new_end, old_blank) + 1):
            bonus = KIN_BONUS if is_kin and step == old_blank else -BLANK_COST
            borders.append(Border(run.old_end + step, bonus - OPEN_BORDER_COST, is_open=True))
        return borders

    def _same_count(self, border: int, num_lines: int, *, is_left: bool) -> list[Border]:
        """As many old lines as there are new ones give way, if these are few."""
        place = border + num_lines
        if abs(num_lines) > MAX_SAME_COUNT or not 0 <= place <= len(self._index):
            return []
        span = (place, border) if is_left else (border, place)
        if self._index.num_filled(*span) != abs(num_lines):
            return []
        weight = -OPEN_BORDER_COST - SAME_COUNT_COST * abs(num_lines)
        return [Border(place, weight, "similar", is_open=True)]

    def _rewritten(self, border: int, new: Sequence[str], step: int) -> list[Border]:
        """Few old lines beside `border` give way to more lines that have all their words."""
        words = self._words.of_lines(new[:MAX_HEAD_LINES])
        at, num_old = (border if step > 0 else border - 1), 0
        old: Counter[str] = Counter()
        found: list[Border] = []
        while 0 <= at < len(self._index) and num_old < min(MAX_REWRITTEN, len(new)):
            text = self._index.stripped[at]
            if text:
                num_old += 1
                for word, count in self._words.words(text).items():
                    old[word] += count
                kept = self._words.kept_share(old, words)
                if kept >= MIN_REWRITTEN_SHARE and len(old) >= MIN_REWRITTEN_WORDS:
                    place = at + 1 if step > 0 else at
                    found.append(_alike_border(place, REWRITTEN_BONUS - OPEN_BORDER_COST, 0))
            at += step
        return found[-1:]

    def _attributes(self, border: int, new: Sequence[str]) -> list[Border]:
        """The attributes directly above `border` give way to new ones."""
        place = border
        while place > 0 and is_attribute(self._index.stripped[place - 1]):
            place -= 1
        if place == border or not all(map(is_attribute, new)):
            return []
        return [_alike_border(place, REWRITTEN_BONUS - OPEN_BORDER_COST, 0)]

    def _is_slid(self, run: Run) -> bool:
        """Whether new lines would follow a line directly that are set off from `run` below."""
        if run.is_border or run.is_definition or self._stripped[run.new - 1]:
            return False
        above = self._index.stripped[run.old - 1] if run.old > 0 else ""
        return bool(above) and not above.endswith(BLOCK_OPENERS)

    def _trimmed_left(self, run: Run) -> list[Border]:
        bonus = self._leading.get(run, 0.0)
        return self._trimmed(run, range(run.new, run.new_end), shift=1, bonus=bonus)

    def _trimmed_right(self, run: Run) -> list[Border]:
        places = range(run.new_end - 1, run.new - 1, -1)
        return self._trimmed(run, places, shift=0, bonus=self._trailing.get(run, 0.0))

    def _trimmed(self, run: Run, places: range, *, shift: int, bonus: float) -> list[Border]:
        """The outermost lines of the run say little ("}"): perhaps they are new ones."""
        borders: list[Border] = []
        lost_weight = 0.0
        if run.is_definition:
            return borders
        for place in places[:MAX_TRIMMED]:
            lost_weight += self._index.weight(self._stripped[place])
            if self._index.fullness(self._stripped[place]) >= MIN_FULLNESS:
                break
            if self._stripped[place]:
                border = run.old + place - run.new + shift
                weight = bonus - lost_weight - OPEN_BORDER_COST
                borders.append(Border(border, weight, is_open=True))
        return borders

    def _before_blanks(self, run: Run) -> list[Border]:
        """New lines that belong to what stands above go before the blank lines above `run`."""
        if run.is_border:
            return []
        num_shown = run.new
        while num_shown > 0 and not self._stripped[num_shown - 1]:
            num_shown -= 1
        num_blank = min(run.new - num_shown, self._index.blank_before(run.old))
        head = next(place for place, text in enumerate(self._stripped) if text)
        depth = len(indent_of(self._texts[head]))
        is_deeper = depth > len(indent_of(self._texts[run.new]))
        borders: list[Border] = []
        above = run.old - num_blank - 1
        is_kin = (
            above >= 0
            and num_blank == self._index.blank_before(run.old)
            and begin_alike(self._stripped[head], self._index.stripped[above])
            and not begin_alike(self._stripped[head], self._stripped[run.new])
        )
        for step in range(1, num_blank + 1):
            is_meant = is_deeper and step == num_blank - 1 + (num_blank == 1)
            bonus = DEEPER_BONUS if is_meant else -BLANK_COST
            if is_kin:
                bonus = KIN_BONUS if step == num_blank else -BLANK_COST
            borders.append(Border(run.old - step, bonus - OPEN_BORDER_COST, is_open=True))
        return borders

    def _alike_weight(
        self,
        pairs: Sequence[tuple[int, int, float]],
        old: Sequence[str],
        new: Sequence[str],
        at_edge: bool,
    ) -> tuple[float, int]:
        """The odds that `old` gives way to `new`, which are alike as `pairs` say."""
        gain = sum(
            self._index.fullness(new[place]) * ALIKE_SLOPE * (ratio - EVEN_SIMILARITY)
            for _, place, ratio in pairs
        )
        lost = max(0, sum(map(bool, old)) - len(new))
        unpaired = sum(map(bool, old)) - len(pairs)
        cost = OPEN_BORDER_COST * (0.4 if at_edge else 1.3)
        return gain - cost - LOST_COST * math.log1p(lost) - 0.5 * unpaired, lost

    def _context_bonus(self, runs: Sequence[Run], *, is_leading: bool) -> dict[Run, float]:
        """The longest runs at one border of the segment: context, if they say anything."""
        limit = len(self._stripped)
        outer = [
            run
            for run in runs
            if not run.is_border and (run.new == 0 if is_leading else run.new_end == limit)
        ]
        longest = max((run.new_end - run.new for run in outer), default=0)
        best = [run for run in outer if run.new_end - run.new == longest and run.is_exact]
        bonus: dict[Run, float] = {}
        for run in best:
            says = max(map(self._index.fullness, self._stripped[run.new : run.new_end]))
            bonus[run] = CONTEXT_BONUS * says / len(best)
        return bonus


def _alike_border(place: int, weight: float, lost: int) -> Border:
    return Border(place, weight, "similar", is_open=True, max_lost=lost)
