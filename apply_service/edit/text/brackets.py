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


def balance_of(lines: Sequence[str]) -> Balance:
    """The surplus of opened brackets in `lines`, by kind; negative if closed."""
    depth = (0, 0, 0)
    for line in lines:
        depth = _added(depth, line)
    return depth


def _added(depth: Balance, line: str) -> Balance:
    return (
        depth[0] + line.count("(") - line.count(")"),
        depth[1] + line.count("[") - line.count("]"),
        depth[2] + line.count("{") - line.count("}"),
    )
