"""A case as lines, as the oracles damage it."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from functools import cached_property

from apply_service.edit.read.markers import MarkerReader
from apply_service.edit.text.alignment import Hunk, changed_hunks
from apply_service.edit.text.text_file import TextFile
from apply_service.evaluate.cases.case_file import Case

IMPORT = re.compile(r"\s*(?:(?:import|from|use|using|require)\b|#include|const .*= require\()")


class Truth:
    """A case as lines: original, update and expected result, with the hunks between them."""

    def __init__(self, case: Case) -> None:
        self.original = list(TextFile.from_text(case.original).lines)
        self.update = list(TextFile.from_text(case.update).lines)
        self.expected = list(TextFile.from_text(case.expected).lines)

    @cached_property
    def hunks(self) -> list[Hunk]:
        """What changed between original and expected."""
        return changed_hunks(self.original, self.expected)

    @cached_property
    def untouched(self) -> list[int]:
        """Places in the expected text of filled lines that the edit left alone."""
        new = {place for hunk in self.hunks for place in range(hunk.new_start, hunk.new_end)}
        sent = {line.strip() for line in self.update}
        return [
            place
            for place, line in enumerate(self.expected)
            if line.strip() and place not in new and line.strip() not in sent
        ]

    @cached_property
    def markers(self) -> list[str]:
        """The marker lines of the update."""
        reader = MarkerReader(self.original)
        return [line for line in self.update if reader.read(line) is not None]


def cut(lines: Sequence[str], start: int, end: int, *new: str) -> list[str]:
    """The lines with `[start, end)` replaced."""
    return [*lines[:start], *new, *lines[end:]]


def random_untouched(
    generator: random.Random, truth: Truth, pattern: re.Pattern[str] | None = None
) -> int | None:
    """A random untouched place of the expected text whose line matches."""
    places = [
        place
        for place in truth.untouched
        if pattern is None or pattern.search(truth.expected[place])
    ]
    return generator.choice(places) if places else None
