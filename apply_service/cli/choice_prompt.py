"""Shows what an edit in doubt may mean, and asks at a terminal which one is meant."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from apply_service.http.schemas import ChoiceBody

_COLOURS = {"-": "\x1b[31m", "+": "\x1b[32m", "@": "\x1b[36m"}
_PLAIN = "\x1b[0m"


def print_choices(choices: Sequence[ChoiceBody], *, has_diffs: bool) -> None:
    """Print numbered choices and their ids to stderr."""
    for number, choice in enumerate(choices, 1):
        print(f"  {number}. {choice.probability:.0%} {choice.reason}", file=sys.stderr)
        print(f"     --resolve {choice.id}", file=sys.stderr)
        if has_diffs:
            for line in choice.diff.split("\n")[:-1]:
                print(f"     {_coloured(line)}", file=sys.stderr)
            if choice.diff_lines_left_out:
                print(f"     {choice.diff_lines_left_out} more lines", file=sys.stderr)


def can_ask(*inputs: str) -> bool:
    """Whether somebody sits at the terminal; what is read from stdin already is `-`."""
    return "-" not in inputs and sys.stdin.isatty() and sys.stderr.isatty()


def ask_which(choices: Sequence[ChoiceBody]) -> ChoiceBody | None:
    """The choice whose number is typed; None for an empty line or the end of the input."""
    print_choices(choices, has_diffs=True)
    while True:
        print(f"Which one is meant? 1 to {len(choices)}, Enter for none: ", end="", file=sys.stderr)
        sys.stderr.flush()
        typed = sys.stdin.readline().strip()
        if not typed:
            return None
        if typed.isdecimal() and 1 <= int(typed) <= len(choices):
            return choices[int(typed) - 1]


def _coloured(line: str) -> str:
    colour = _COLOURS.get(line[:1])
    is_plain = colour is None or not sys.stderr.isatty() or bool(os.environ.get("NO_COLOR"))
    return line if is_plain else f"{colour}{line}{_PLAIN}"
