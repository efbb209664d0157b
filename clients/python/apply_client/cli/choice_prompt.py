"""Shows what an edit in doubt may mean, and asks at a terminal which one is meant."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from apply_client.cli.shown_diff import coloured
from apply_client.protocol.wire import Choice
from apply_client.shown_text import say


def print_choices(choices: Sequence[Choice], *, has_diffs: bool) -> None:
    """Print numbered choices and their ids to stderr."""
    for number, choice in enumerate(choices, 1):
        say(f"  {number}. {choice.probability:.0%} {choice.reason}")
        say(f"     --resolve {choice.id}")
        if has_diffs:
            for line in choice.diff.split("\n")[:-1]:
                print(f"     {coloured(line, sys.stderr)}", file=sys.stderr)
            if choice.diff_lines_left_out:
                say(f"     {choice.diff_lines_left_out} more lines")


def can_ask(*inputs: str) -> bool:
    """Whether somebody sits at the terminal; what is read from stdin already is `-`."""
    return "-" not in inputs and sys.stdin.isatty() and sys.stderr.isatty()


def ask_which(choices: Sequence[Choice]) -> Choice | None:
    """The choice whose number is typed; None for an empty line or the end of the input."""
    print_choices(choices, has_diffs=True)
    while True:
        say(f"Which one is meant? 1 to {len(choices)}, Enter for none: ", end="")
        sys.stderr.flush()
        typed = sys.stdin.readline().strip()
        if not typed:
            return None
        if typed.isdecimal() and 1 <= int(typed) <= len(choices):
            return choices[int(typed) - 1]
