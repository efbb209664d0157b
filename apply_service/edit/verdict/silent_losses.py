"""Finds lines that a text lacks though the update does not say that they go.

Lines are lost without a word if nothing like them takes their place, no marker stands for them, and
neither a removal nor the instruction speaks of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from apply_service.edit.place.features.telling_words import telling_words
from apply_service.edit.read.instruction_comments import is_comment
from apply_service.edit.read.segment import EXPLICIT_FORMATS, SegmentLine, Snippet
from apply_service.edit.syntax.syntax import SyntaxTree
from apply_service.edit.text.alignment import Hunk, changed_hunks, matching_blocks
from apply_service.edit.text.blank_lines import squeeze
from apply_service.edit.text.block_bounds import closes_block, columns
from apply_service.edit.text.brackets import BLOCK_OPENERS, balance_of
from apply_service.edit.text.similarity import Similarity
from apply_service.edit.verdict.comparison import Comparison

# Pairs of lines that are compared to see what takes the place of lost lines.
MAX_COMPARED = 40_000
# Lines by which a run is moved to where a definition begins.
MAX_SLIDES = 60
# What an instruction that takes something away says, in the clause that names it.
_TAKES_AWAY = re.compile(
    r"remov|delet|\bdrop|\bstrip|eliminat|\brid\b|\bclean|simplif|replac|\binlin|consolidat"
    r"|\bcollaps|\bprun|discard|\bomit|\bleave out|unused|\bdead\b|obsolete|rewrit|no longer"
    r"|any ?more",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(r"[.;:!?](?=\s|$)|\n")
_GONE = re.compile(r"remov|delet|\bdrop|\bgone\b|no longer", re.IGNORECASE)
_GONE_WORDS = telling_words(
    ["remove removed removing delete deleted deleting drop dropped dropping gone longer here"]
)


class Run(NamedTuple):
    """Lines [start, end) of the original; a text that lacks them has blank lines [at, until)."""

    start: int
    end: int
    at: int
    until: int


class Sent:
    """What a caller sent: an update, how it was read, and an instruction.

    `tree` is the syntax of the original.
    """

    def __init__(
        self,
        original_lines: Sequence[str],
        update_lines: Sequence[str],
        snippet: Snippet,
        *,
        tree: SyntaxTree | None,
        instruction: str | None,
    ) -> None:
        self.original = original_lines
        self.snippet = snippet
        self.tree = tree
        self._update_lines = update_lines
        self._instruction = instruction or ""

    @cached_property
    def lines(self) -> list[tuple[SegmentLine, int]]:
        """The filled lines, each with the number of its segment."""
        return [
            (line, number)
            for number, segment in enumerate(self.snippet.segments)
            for line in segment.lines
            if line.text.strip()
        ]

    @cached_property
    def taken_away(self) -> frozenset[str]:
        """The words of what the instruction takes away."""
        return telling_words(filter(_TAKES_AWAY.search, _CLAUSE_END.split(self._instruction)))

    @cached_property
    def notes(self) -> list[frozenset[str]]:
        """What each comment of the update that reports a removal is about."""
        known = set(map(squeeze, self.original))
        return [
            telling_words([line]) - _GONE_WORDS
            for line in self._update_lines
            if _GONE.search(line) and is_comment(line) and squeeze(line) not in known
        ]

    @cached_property
    def symbol_starts(self) -> frozenset[int]:
        """The lines of the original in which definitions begin."""
        return frozenset() if self.tree is None else frozenset(s.start for s in self.tree.symbols)


class TextLosses:
    """What one text of an update has lost."""

    def __init__(self, sent: Sent, lines: tuple[str, ...]) -> None:
        self.lines = lines
        self._sent = sent

    @cached_property
    def _comparison(self) -> Comparison:
        return Comparison(self._sent.original, self._sent.snippet, self.lines, tree=self._sent.tree)

    def silent_runs(self) -> list[Run]:
        """Runs that are lost without a word and could stand again where they stood."""
        return [
            run
            for hunk in self._comparison.hunks
            if self._comparison.lost_places(hunk)
            for run in self._unreplaced(hunk)
            if self._has_place(run) and self.is_silent(run)
        ]

    def runs_more_in(self, other: TextLosses) -> list[Run]:
        """What another text has more, if that is lines of the original alone; else nothing."""
        filled = [place for place, line in enumerate(self.lines) if line.strip()]
        more = changed_hunks(_filled(self.lines), _filled(other.lines))
        if any(hunk.old_start < hunk.old_end for hunk in more):
            return []
        original = self._sent.original
        kept = other._kept_places - self._kept_places
        runs: list[Run] = []
        for place in sorted(place for place in kept if original[place].strip()):
            if runs and not any(map(str.strip, original[runs[-1].end : place])):
                runs[-1] = runs[-1]._replace(end=place + 1)
            else:
                runs.append(Run(place, place + 1, 0, 0))
        num_more = sum(hunk.new_end - hunk.new_start for hunk in more)
        num_kept = sum(bool(original[place].strip()) for run in runs for place in range(*run[:2]))
        if len(runs) != len(more) or num_kept != num_more:
            return []
        ends = [0, *(place + 1 for place in filled)]
        places = [ends[hunk.old_start] for hunk in more]
        return [
            self._slid(run._replace(at=place, until=place))
            for run, place in zip(runs, places, strict=True)
        ]

    def is_silent(self, run: Run) -> bool:
        """Whether the lines are lost and nothing that was sent speaks of them."""
        comparison = self._comparison
        lines = comparison.original[run.start : run.end]
        texts = comparison.original_texts[run.start : run.end]
        telling = [one for one in texts if any(map(str.isalnum, one)) and not closes_block(one)]
        num_lost = sum(
            comparison.result_counts[text] < comparison.original_counts[text] for text in telling
        )
        if 2 * num_lost <= len(telling):
            return False  # they stand elsewhere, or say nothing
        if any(map(comparison.has_removed_name, lines)):
            return False
        is_named = comparison.snippet.format in EXPLICIT_FORMATS
        if is_named and any(comparison.removed_counts[text] for text in telling):
            return False
        words = telling_words(lines)
        is_noted = any(not note or note & words for note in self._sent.notes)
        return not (is_noted or words & self._sent.taken_away or self._is_marked(run))

    @cached_property
    def _kept_places(self) -> set[int]:
        """The lines of the original that the text has, from 0."""
        return {
            block.old_start + step
            for block in matching_blocks(self._sent.original, self.lines)
            for step in range(block.length)
        }

    @cached_property
    def _sent_places(self) -> list[tuple[int, int]]:
        """The filled lines of the text that were sent, each with its number among `Sent.lines`."""
        texts = self._comparison.result_texts
        return [
            (block.old_start + step, block.new_start + step)
            for block in matching_blocks(texts, [squeeze(one.text) for one, _ in self._sent.lines])
            for step in range(block.length)
        ]

    def _unreplaced(self, hunk: Hunk) -> Iterator[Run]:
        """The runs of a hunk in whose place nothing stands that is like them."""
        old, new = self._comparison.original_texts, self._comparison.result_texts
        old_places = [place for place in range(hunk.old_start, hunk.old_end) if old[place]]
        new_places = [place for place in range(hunk.new_start, hunk.new_end) if new[place]]
        pairs = Similarity().aligned(
            [old[place] for place in old_places],
            [new[place] for place in new_places],
            limit=MAX_COMPARED,
        )
        start, at = hunk.old_start, hunk.new_start
        borders = [(old_places[row], new_places[column]) for row, column, _ in pairs]
        for end, until in (*borders, (hunk.old_end, hunk.new_end)):
            if any(old[start:end]) and not any(new[at:until]):
                yield self._slid(Run(start, end, at, until))
            start, at = end + 1, until + 1

    def _slid(self, run: Run) -> Run:
        """The same loss where a definition or a block begins: equal lines stand for each other."""
        lines, starts = self._sent.original, self._sent.symbol_starts

        def cost(one: Run) -> tuple[bool, bool, int]:
            first = next(place for place in range(one.start, one.end) if lines[place].strip())
            return first not in starts, closes_block(lines[first].strip()), columns(lines[first])

        return min((run, *self._slides(run, -1), *self._slides(run, 1)), key=cost)

    def _slides(self, run: Run, step: int) -> Iterator[Run]:
        """The run moved up (-1) or down (1) line by line, as long as that is the same loss."""
        lines = self._sent.original
        for _ in range(MAX_SLIDES):
            own, next_one, at = run.start, run.end, run.at
            if step < 0:
                own, next_one, at = run.end - 1, run.start - 1, run.at - 1
            is_inside = 0 <= next_one < len(lines) and 0 <= at < len(self.lines)
            if run.at < run.until or not is_inside:
                return
            if not lines[own] == lines[next_one] == self.lines[at]:
                return
            run = Run(*(number + step for number in run))
            yield run

    def _has_place(self, run: Run) -> bool:
        """Whether the lines around it are as deep as they were around the run."""
        original = self._sent.original
        above = _filled_from(original, run.start - 1, -1), _filled_from(self.lines, run.at - 1, -1)
        below = _filled_from(original, run.end, 1), _filled_from(self.lines, run.until, 1)
        return all(not old or columns(old) == columns(new) for old, new in (above, below))

    def _is_marked(self, run: Run) -> bool:
        """Whether a marker of the update stands for the lines.

        A marker that is less deep than they are stands for what follows their block, if the lines
        above it leave none open.
        """
        before = [pair for pair in self._sent_places if pair[0] < run.at]
        behind = [pair for pair in self._sent_places if pair[0] >= run.until]
        segments, sent = self._sent.snippet.segments, self._sent.lines
        below = sent[behind[0][1]][1] if behind else len(segments)
        if not before:
            return not behind or segments[below].has_gap_before
        place, number = before[-1]
        last, above = sent[number]
        if not any(segment.has_gap_after for segment in segments[above:below]):
            return False
        is_end = number + 1 == len(sent) or sent[number + 1][1] > above
        is_next = behind and not any(map(str.strip, self.lines[run.until : behind[0][0]]))
        if not is_end or is_next or any(map(str.strip, self.lines[place + 1 : run.at])):
            return True
        if _leaves_open(segments[above].texts):
            return True
        indent = segments[above].next_indent
        shift = columns(self.lines[place]) - columns(last.text)
        lines = filter(str.strip, self._comparison.original[run.start : run.end])
        return indent is None or indent + shift >= min(map(columns, lines))


def _leaves_open(lines: Sequence[str]) -> bool:
    """Whether a block that begins in the lines does not end there, as brackets or colons tell."""
    depth = 0
    for line in lines:
        depth = max(depth + sum(balance_of([line])), 0)
    filled = _filled(lines)
    return depth > 0 or (bool(filled) and filled[-1].endswith(BLOCK_OPENERS))


def _filled(lines: Sequence[str]) -> list[str]:
    return [line.rstrip() for line in lines if line.strip()]


def _filled_from(lines: Sequence[str], place: int, step: int) -> str:
    """The first filled line from a place on, or backwards; "" at the border of the text."""
    places = range(place, len(lines)) if step > 0 else range(place, -1, -1)
    return next((lines[one] for one in places if lines[one].strip()), "")
