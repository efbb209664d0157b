"""Finds lines of a result that nothing can reach, and that could be reached before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from apply_service.edit.finding import Finding
from apply_service.edit.place.candidates.original_facts import OriginalFacts
from apply_service.edit.place.features.text_flaws import TextFlaws
from apply_service.edit.verdict.comparison import Comparison, shown


def check_unreachable(comparison: Comparison) -> Iterator[Finding]:
    """Check that no line stands behind a `return` or the like that did not stand so before.

    Mostly the old end of a block then follows the new one.
    """
    if comparison.tree is None:
        return
    language = comparison.tree.language
    before, after = (
        OriginalFacts(lines, language) for lines in (comparison.original, comparison.result)
    )
    known = Counter(before.stripped[line] for line in TextFlaws(before).dead_lines)
    for line in TextFlaws(after).dead_lines:
        text = after.stripped[line]
        known[text] -= 1
        if known[text] < 0:
            number = after.numbers[line] + 1
            yield Finding(
                code="unreachable",
                severity="warning",
                message=f"line {number} of the result cannot be reached, as it follows"
                f" {shown(after.stripped[line - 1])}: {shown(text)}",
                hint="if it was to be replaced, send it or an unchanged line below it",
                line=number,
            )
