"""Brackets and other ends of blocks, and the balance of brackets in spans of lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

Balance = tuple[int, int, int]

CLOSER_OF = {"(": ")", "[": "]", "{": "}"}
OPENER_OF = {closer: opener for opener, closer in CLOSER_OF.items()}
OPENING_BRACKETS = tuple(CLOSER_OF)
CLOSING_BRACKETS = tuple(OPENER_OF)
# What a line ends with that opens a block.
BLOCK_OPENERS = (*OPENING_BRACKETS, ":")
# What a line begins with that ends a block: in most languages, and in those of shells as well.
CLOSERS_OR_END = (*CLOSING_BRACKETS, "end")
BLOCK_ENDS = (*CLOSERS_OR_END, "fi", "done", "esac")
_BRACKET = re.compile(r"[][(){}]")


class BalanceIndex:
    """Bracket depths at every border of an original, so that any span is two look-ups."""

    def __init__(self, lines: Sequence[str]) -> None:
        depth = (0, 0, 0)
        self._depths: list[Balance] = [depth]
        for line in lines:
            if _BRACKET.search(line) is not None:
                depth = _added(depth, line)
            self._depths.append(depth)

    def of(self, start: int, end: int) -> Balance:
        """The surplus of opened brackets in lines `[start, end)`, by kind; negative if closed."""
        before, after = self._depths[start], self._depths[end]
        return (after[0] - before[0], after[1] - before[1], after[2] - before[2])


def balance_of(lines: Sequence[str]) -> Balance:
    """The surplus of opened brackets in `lines`, by kind; negative if closed."""
    depth = (0, 0, 0)
    for line in lines:
        depth = _added(depth, line)
    return depth


def num_closed_before(lines: Sequence[str]) -> int:
    """Number of brackets that `lines` close without having opened them."""
    depths = dict.fromkeys(OPENING_BRACKETS, 0)
    count = 0
    for line in lines:
        for bracket in _BRACKET.finditer(line):
            if bracket[0] in depths:
                depths[bracket[0]] += 1
                continue
            start = OPENER_OF[bracket[0]]
            count += not depths[start]
            depths[start] = max(depths[start] - 1, 0)
    return count


def num_misplaced(lines: Sequence[str]) -> int:
    """Number of lines that begin with a block's end and are not indented as its start is."""
    starts: list[int] = []
    count = 0
    for line in lines:
        first = len(line) - len(line.lstrip())
        for bracket in _BRACKET.finditer(line):
            if bracket[0] in OPENING_BRACKETS:
                starts.append(first)
            elif starts:
                count += starts.pop() != first and bracket.start() == first
    return count


def _added(depth: Balance, line: str) -> Balance:
    return (
        depth[0] + line.count("(") - line.count(")"),
        depth[1] + line.count("[") - line.count("]"),
        depth[2] + line.count("{") - line.count("}"),
    )
