"""Original, update and result side by side, with what the checks share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

from apply_service.edit.read.markers import MarkerReader
from apply_service.edit.read.segment import Segment, SegmentLine, Snippet
from apply_service.edit.syntax.syntax import SyntaxTree, parse
from apply_service.edit.text.alignment import Hunk, changed_hunks
from apply_service.edit.text.blank_lines import Gap, GapTable, gaps_of, squeeze
from apply_service.edit.text.words import DASHED_WORD, DOLLAR_WORD

# The syntax of longer results is not looked at: parsing takes a quarter of a second a megabyte.
MAX_PARSED_CHARACTERS = 400_000
# Losing more lines than this between two adjacent lines of the update is worth a look.
MAX_EXPLAINED_LOSS = 10


@dataclass(frozen=True, slots=True)
class Loss:
    """Lines of the original, from 0, of which the update replaces only a part."""

    places: tuple[int, ...]
    num_replaced: int


class Comparison:
    """The three texts with what the checks share, computed on first use.

    Lines are compared by content (`squeeze`): indentation has a check of its own. `tree` is the
    syntax of the original, if its language is known.
    """

    def __init__(
        self,
        original_lines: Sequence[str],
        snippet: Snippet,
        result_lines: Sequence[str],
        *,
        tree: SyntaxTree | None = None,
    ) -> None:
        self.original = list(original_lines)
        self.snippet = snippet
        self.result = list(result_lines)
        self.tree = tree
        self.reader = MarkerReader(original_lines)
        self.removed_names = {removal.name.rpartition(".")[2] for removal in snippet.removals}
        self.runs = [run for segment in snippet.segments for run in _runs(segment)]

    @cached_property
    def sent(self) -> list[SegmentLine]:
        """The filled lines of the update that belong into the result, optional ones included."""
        return [line for run in self.runs for line in run]

    @cached_property
    def original_lines(self) -> frozenset[str]:
        """The exact lines of the original."""
        return frozenset(self.original)

    @cached_property
    def original_texts(self) -> list[str]:
        """The content of each line of the original."""
        return list(map(squeeze, self.original))

    @cached_property
    def result_texts(self) -> list[str]:
        """The content of each line of the result."""
        return list(map(squeeze, self.result))

    @cached_property
    def original_counts(self) -> Counter[str]:
        """How often each line stands in the original."""
        return Counter(self.original_texts)

    @cached_property
    def num_filled_before(self) -> list[int]:
        """For each border between lines of the original the number of filled lines before it."""
        return [0, *accumulate(map(bool, self.original_texts))]

    @cached_property
    def sent_counts(self) -> Counter[str]:
        """How often each line stands in the update."""
        return Counter(squeeze(line.text) for line in self.sent)

    @cached_property
    def result_counts(self) -> Counter[str]:
        """How often each line stands in the result."""
        return Counter(self.result_texts)

    @cached_property
    def added_counts(self) -> Counter[str]:
        """How often the update adds each line; only formats that mark new lines say so."""
        return Counter(squeeze(line.text) for line in self.sent if line.role == "new")

    @cached_property
    def removed_counts(self) -> Counter[str]:
        """How often the update takes each line away; only formats that name old lines say so."""
        removed: Counter[str] = Counter()
        for segment in self.snippet.segments:
            if segment.old is not None:
                kept = Counter(squeeze(line.text) for line in segment.lines if line.role != "new")
                removed += Counter(filter(None, map(squeeze, segment.old))) - kept
        return removed

    @cached_property
    def new_lines(self) -> list[SegmentLine]:
        """Lines of the update that the original does not have."""
        return [
            line
            for line in self.sent
            if not line.is_optional and squeeze(line.text) not in self.original_counts
        ]

    @cached_property
    def sent_pairs(self) -> set[tuple[str, str]]:
        """Adjacent lines of the update, with and without the optional ones between them.

        "" stands for the border of the file. Segments without a gap between them adjoin.
        """
        pairs: set[tuple[str, str]] = set()
        for run in self.runs:
            pairs.update(pairwise(squeeze(line.text) for line in run))
            pairs.update(pairwise(squeeze(line.text) for line in run if not line.is_optional))
        end = ""
        is_open = False
        for segment in self.snippet.segments:
            texts = list(filter(None, map(squeeze, segment.texts)))
            if texts and not segment.has_gap_before and not is_open:
                pairs.add((end, texts[0]))
            end = texts[-1] if texts else end
            is_open = segment.has_gap_after
        if self.snippet.segments and not is_open:
            pairs.add((end, ""))
        return pairs

    @cached_property
    def changed_gaps(self) -> list[Gap]:
        """The gaps of the result in and around changed hunks, in order."""
        gaps: dict[int, Gap] = {}
        num_lines = len(self.result)
        for hunk in self.hunks:
            start, end = hunk.new_start, hunk.new_end
            while start > 0 and not self.result_texts[start - 1]:
                start -= 1
            while end < num_lines and not self.result_texts[end]:
                end += 1
            start, end = max(0, start - 1), min(num_lines, end + 1)
            for gap in gaps_of(self.result_texts[start:end], first_number=start + 1):
                is_border = start == 0 if not gap.left else end == num_lines or gap.right
                if is_border:
                    gaps[gap.number] = gap
        return [gaps[number] for number in sorted(gaps)]

    @cached_property
    def original_gaps(self) -> GapTable:
        """Blank lines in the original beside the lines of the changed gaps."""
        texts = {text for gap in self.changed_gaps for text in (gap.left, gap.right)}
        return GapTable(list(gaps_of(self.original_texts, around=texts)))

    @cached_property
    def sent_gaps(self) -> GapTable:
        """Blank lines in the update; next to a marker they count for their one neighbour.

        None beside a marker says nothing: the original's own may stand there.
        """
        gaps: list[Gap] = []
        for segment in self.snippet.segments:
            gaps += gaps_of([squeeze(text) for text in segment.texts])
        at_borders = [gap for gap in gaps if gap.num_blank and not (gap.left and gap.right)]
        return GapTable(
            [gap for gap in gaps if gap.left and gap.right],
            afters=[gap for gap in at_borders if not gap.right],
            befores=[gap for gap in at_borders if gap.right],
        )

    @cached_property
    def known_counts(self) -> Counter[str]:
        """How often original and update together have each exact line."""
        return Counter(self.original) + Counter(line.text for line in self.sent)

    @cached_property
    def result_tree(self) -> SyntaxTree | None:
        """The syntax of the result; None if that of the original is not known, or it is long."""
        if self.tree is None or sum(map(len, self.result)) > MAX_PARSED_CHARACTERS:
            return None
        return parse(self.result, self.tree.language)

    @cached_property
    def result_imports(self) -> frozenset[int]:
        """The lines of the result, from 0, that import something."""
        spans = () if self.result_tree is None else self.result_tree.imports
        return frozenset(place for start, end in spans for place in range(start, end))

    @cached_property
    def hunks(self) -> list[Hunk]:
        """What changed between original and result."""
        return changed_hunks(self.original, self.result)

    def lost_places(self, hunk: Hunk) -> list[int]:
        """Filled lines of the original, from 0, that the hunk drops and that no other place has."""
        return [
            place
            for place in range(hunk.old_start, hunk.old_end)
            if (text := self.original_texts[place])
            and self.result_counts[text] < self.original_counts[text]
        ]

    def inserted_texts(self, hunk: Hunk) -> list[str]:
        """The filled lines of the result in a hunk, squeezed."""
        return list(filter(None, self.result_texts[hunk.new_start : hunk.new_end]))

    @cached_property
    def losses(self) -> list[Loss]:
        """Lost places by hunk, without those that the update accounts for.

        A loss is accounted for by a removal that names it, by as many lines of the update in its
        place, or by fewer that have all their words, or by two adjacent lines of the update around
        it if it is small.
        """
        return [
            Loss(tuple(lost), num_replaced)
            for hunk in self.hunks
            if (lost := self.unnamed_losses(hunk))
            and not self.is_cut_out(hunk, num_lost=len(lost))
            and len(lost) > (num_replaced := self._num_replaced(hunk))
            and not self._is_joined(hunk, lost)
        ]

    def unnamed_losses(self, hunk: Hunk) -> list[int]:
        """The lost places of a hunk if no removal of the update names any of them."""
        lost = self.lost_places(hunk)
        if any(self.has_removed_name(self.original[place]) for place in lost):
            return []
        seen: Counter[str] = Counter()
        unnamed = []
        for place in lost:
            text = self.original_texts[place]
            seen[text] += 1
            if seen[text] > self.removed_counts[text]:
                unnamed.append(place)
        return unnamed

    def is_cut_out(self, hunk: Hunk, *, num_lost: int) -> bool:
        """Whether the update itself has these lines and their neighbours as they stand now.

        Then a small loss is meant: lines of the original that it leaves out between its own.
        `num_lost` are the hunk's unnamed losses.
        """
        inserted = self.inserted_texts(hunk)
        before, after = self.neighbours(hunk)
        if not all(pair in self.sent_pairs for pair in pairwise([before, *inserted, after])):
            return False
        is_whole = self.snippet.format == "whole"
        return is_whole or num_lost <= max(MAX_EXPLAINED_LOSS, len(inserted))

    def _num_replaced(self, hunk: Hunk) -> int:
        return sum(1 for text in self.inserted_texts(hunk) if self.sent_counts[text])

    def _is_joined(self, hunk: Hunk, lost: Sequence[int]) -> bool:
        """Whether lines of the update in the place of the `lost` ones have all their words."""
        sent = filter(self.sent_counts.__getitem__, self.inserted_texts(hunk))
        words = Counter(word for text in sent for word in DOLLAR_WORD.findall(text))
        gone = Counter(word for place in lost for word in DOLLAR_WORD.findall(self.original[place]))
        return bool(gone) and gone <= words

    def is_listing(self, line: str) -> bool:
        """Whether the line is a listing that the update does not have as text."""
        return self.reader.is_listing(line) and not self.sent_counts[squeeze(line)]

    def has_removed_name(self, line: str) -> bool:
        """Whether the line has a name, or a title, that a removal directive of the update has."""
        names = self.removed_names
        if not names:
            return False
        words = [*DOLLAR_WORD.findall(line), *DASHED_WORD.findall(line)]
        return not names.isdisjoint(words) or any(title in line for title in self._removed_titles)

    @cached_property
    def _removed_titles(self) -> list[str]:
        """What stands in the header of a test, a section or a handler that is removed."""
        found: list[str] = []
        for title in (removal.name for removal in self.snippet.removals if " " in removal.name):
            _, slash, path = title.partition(" /")
            found += [f"{quote}/{path}{quote}" for quote in "'\"`"] if slash else [title]
        return found

    def neighbours(self, hunk: Hunk) -> tuple[str, str]:
        """The nearest filled lines of the result around a hunk; "" at the file's border."""
        before = (self.result_texts[place] for place in range(hunk.new_start - 1, -1, -1))
        after = (self.result_texts[place] for place in range(hunk.new_end, len(self.result)))
        return first_filled(before), first_filled(after)


def _runs(segment: Segment) -> Iterator[list[SegmentLine]]:
    """The filled lines of a segment; a line that is part marker belongs to none and cuts it."""
    run: list[SegmentLine] = []
    for line in segment.lines:
        if line.has_inline_marker:
            yield run
            run = []
        elif line.text.strip():
            run.append(line)
    yield run


def first_filled(texts: Iterator[str]) -> str:
    """The first text that is not empty; "" if there is none."""
    return next(filter(None, texts), "")


def shown(line: str) -> str:
    """A line as messages quote it."""
    text = squeeze(line)
    return f"`{text[:77]}…`" if len(text) > 78 else f"`{text}`"
