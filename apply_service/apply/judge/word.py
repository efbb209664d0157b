"""What a judge said, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

# Of a judge that nobody has measured. If it is right about 8 of 10 doubts in truth, half of all
# doubts are settled, 4 % of these wrongly (tests/oracles/edits/judge_gain.py).
DEFAULT_ACCURACY = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """What a judge said: the number of a choice from 0, or None for none of them.

    It is right with `accuracy`. `model` is the judge's name, `seconds` how long it took.
    """

    number: int | None
    accuracy: float
    model: str
    seconds: float
