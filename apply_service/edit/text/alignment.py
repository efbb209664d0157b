"""Matches the equal lines of two versions of a text; near-linear on any input."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from rapidfuzz.distance import LCSseq

from apply_service.edit.text.work_budget import BudgetSpentError, limited_work, spend

# Above this many cell pairs a gap without a line that is unique on both sides is left unmatched.
MAX_GAP_CELLS = 250_000
# `difflib` looks at a pair of equal lines once for each block around it; beyond so many looks the
# longest common subsequence is taken, whose time does not depend on what the lines say.
MAX_LOOKS = 500_000
_LOOKS_PER_COMPARISON = 20


@dataclass(frozen=True, slots=True)
class Block:
    """`length` equal lines, from `old_start` in the old version and `new_start` in the new one."""

    old_start: int
    new_start: int
    length: int


@dataclass(frozen=True, slots=True)
class Hunk:
    """Old lines `[old_start, old_end)` became new lines `[new_start, new_end)`."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def matching_blocks(old: Sequence[str], new: Sequence[str]) -> list[Block]:
    """Blocks of equal lines in rising order on both sides, never overlapping or adjoining.

    Equal head and tail are matched first, then lines that are unique on both sides, then small
    gaps by `small_blocks`. A large gap of repeated lines stays unmatched: the result is a valid
    alignment, not always a shortest one.
    """
    merged: list[Block] = []
    for block in _align(old, new, 0, len(old), 0, len(new)):
        if merged and _adjoins(merged[-1], block):
            last = merged.pop()
            block = Block(last.old_start, last.new_start, last.length + block.length)
        merged.append(block)
    return merged


def changed_hunks(old: Sequence[str], new: Sequence[str]) -> list[Hunk]:
    """The changes between the matching blocks, in order."""
    hunks: list[Hunk] = []
    old_start = new_start = 0
    for block in [*matching_blocks(old, new), Block(len(old), len(new), 0)]:
        if block.old_start > old_start or block.new_start > new_start:
            hunks.append(Hunk(old_start, block.old_start, new_start, block.new_start))
        old_start = block.old_start + block.length
        new_start = block.new_start + block.length
    return hunks


def bounded_hunks(old: Sequence[str], new: Sequence[str]) -> list[Hunk]:
    """The changed hunks, or a single one if comparing takes too long.

    The single hunk holds everything between the equal head and tail. Either way the hunks turn the
    old text into the new one.
    """
    try:
        with limited_work():
            return changed_hunks(old, new)
    except BudgetSpentError:
        head = _common_head(old, new, 0, len(old), 0, len(new))
        tail = _common_tail(old, new, head, len(old), head, len(new))
        return [Hunk(head, len(old) - tail, head, len(new) - tail)]


def _adjoins(left: Block, right: Block) -> bool:
    return (left.old_start + left.length, left.new_start + left.length) == (
        right.old_start,
        right.new_start,
    )


def _align(
    old: Sequence[str], new: Sequence[str], old_lo: int, old_hi: int, new_lo: int, new_hi: int
) -> Iterator[Block]:
    """Blocks within `old[old_lo:old_hi]` and `new[new_lo:new_hi]`; a stack instead of recursion."""
    pending = [(old_lo, old_hi, new_lo, new_hi)]
    while pending:
        old_lo, old_hi, new_lo, new_hi = pending.pop()
        head = _common_head(old, new, old_lo, old_hi, new_lo, new_hi)
        if head:
            yield Block(old_lo, new_lo, head)
        old_lo, new_lo = old_lo + head, new_lo + head
        tail = _common_tail(old, new, old_lo, old_hi, new_lo, new_hi)
        old_hi, new_hi = old_hi - tail, new_hi - tail
        if tail:
            # A gap in front of the tail must come out first, so the tail goes on the stack alone.
            pending.append((old_hi, old_hi + tail, new_hi, new_hi + tail))
        if old_lo == old_hi or new_lo == new_hi:
            continue
        if old_hi - old_lo == new_hi - new_lo == 1:
            continue  # two lines that differ
        anchors = _unique_anchors(old, new, old_lo, old_hi, new_lo, new_hi)
        if anchors:
            pending.extend(reversed(_gaps_at(anchors, old_lo, old_hi, new_lo, new_hi)))
        elif (old_hi - old_lo) * (new_hi - new_lo) <= MAX_GAP_CELLS:
            for block in small_blocks(old[old_lo:old_hi], new[new_lo:new_hi]):
                yield Block(block.old_start + old_lo, block.new_start + new_lo, block.length)


def small_blocks(old: Sequence[str], new: Sequence[str]) -> list[Block]:
    """Blocks of equal lines of two short texts, in rising order; few long ones come first.

    Raises BudgetSpentError.
    """
    counts = Counter(old)
    num_pairs = sum(counts[line] for line in new)
    num_looks = num_pairs * min(len(old), len(new), num_pairs)
    if num_looks > MAX_LOOKS:
        spend(len(old) * len(new) // 64)
        return _common_blocks(old, new)
    spend(len(old) + len(new) + num_looks // _LOOKS_PER_COMPARISON)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return [Block(*block) for block in matcher.get_matching_blocks() if block.size]


def _common_blocks(old: Sequence[str], new: Sequence[str]) -> list[Block]:
    """The longest common subsequence, as blocks."""
    numbers: dict[str, int] = {}
    old_numbers, new_numbers = (
        [numbers.setdefault(line, len(numbers)) for line in lines] for lines in (old, new)
    )
    return [
        Block(code.src_start, code.dest_start, code.src_end - code.src_start)
        for code in LCSseq.opcodes(old_numbers, new_numbers)
        if code.tag == "equal"
    ]


def _common_head(
    old: Sequence[str], new: Sequence[str], old_lo: int, old_hi: int, new_lo: int, new_hi: int
) -> int:
    limit = min(old_hi - old_lo, new_hi - new_lo)
    length = 0
    while length < limit and old[old_lo + length] == new[new_lo + length]:
        length += 1
    return length


def _common_tail(
    old: Sequence[str], new: Sequence[str], old_lo: int, old_hi: int, new_lo: int, new_hi: int
) -> int:
    limit = min(old_hi - old_lo, new_hi - new_lo)
    length = 0
    while length < limit and old[old_hi - 1 - length] == new[new_hi - 1 - length]:
        length += 1
    return length


def _unique_anchors(
    old: Sequence[str], new: Sequence[str], old_lo: int, old_hi: int, new_lo: int, new_hi: int
) -> list[tuple[int, int]]:
    """The longest rising chain of lines that stand exactly once on each side."""
    old_place = _unique_places(old, old_lo, old_hi)
    pairs = [
        (old_place[line], place)
        for line, place in _unique_places(new, new_lo, new_hi).items()
        if line in old_place
    ]
    pairs.sort(key=lambda pair: pair[1])
    return longest_rising(pairs)


def _unique_places(lines: Sequence[str], start: int, end: int) -> dict[str, int]:
    places: dict[str, int] = {}
    repeated: set[str] = set()
    for place in range(start, end):
        line = lines[place]
        if line in places:
            repeated.add(line)
        places[line] = place
    return {line: place for line, place in places.items() if line not in repeated}


def longest_rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest subsequence of `pairs` that rises in its first member (patience sorting)."""
    tops: list[int] = []
    top_index: list[int] = []
    previous: list[int] = []
    for index, (old_place, _) in enumerate(pairs):
        pile = bisect_left(tops, old_place)
        previous.append(top_index[pile - 1] if pile else -1)
        if pile == len(tops):
            tops.append(old_place)
            top_index.append(index)
        else:
            tops[pile] = old_place
            top_index[pile] = index
    chain: list[tuple[int, int]] = []
    index = top_index[-1] if top_index else -1
    while index >= 0:
        chain.append(pairs[index])
        index = previous[index]
    return chain[::-1]


def _gaps_at(
    anchors: Sequence[tuple[int, int]], old_lo: int, old_hi: int, new_lo: int, new_hi: int
) -> list[tuple[int, int, int, int]]:
    """The ranges that begin at the start or at an anchor and end before the next anchor."""
    starts = [(old_lo, new_lo), *anchors]
    ends = [*anchors, (old_hi, new_hi)]
    return [
        (old_start, old_end, new_start, new_end)
        for (old_start, new_start), (old_end, new_end) in zip(starts, ends, strict=True)
    ]
