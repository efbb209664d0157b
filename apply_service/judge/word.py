"""What a judge said, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

# Of a judge that nobody has measured, so that its word settles a doubt between two likely merges
# and none against the odds; docs/judge.md.
DEFAULT_ACCURACY = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """What a judge said: the number of a choice from 0, or None for none of them.

    It is right with `accuracy`. `model` is the judge's name, `seconds` how long it took.
    """

    number: int | None
    accuracy: float
    model: str
    seconds: float
