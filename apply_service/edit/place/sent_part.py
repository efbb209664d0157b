"""A part of an update beside the lines of the original that it is about."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SentPart:
    """`lines` were sent for lines `[start, end)` of the original, counted from 0."""

    start: int
    end: int
    lines: tuple[str, ...]
