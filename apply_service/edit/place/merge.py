"""The deterministic merge: where every segment of a snippet goes, and whether that is certain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

from apply_service.edit.finding import Finding
from apply_service.edit.place.merge_planner import MergePlanner
from apply_service.edit.place.path_search import PathSearch
from apply_service.edit.place.placement import MergePath, Placement, RemovedSpan
from apply_service.edit.place.splice import Membership, splice
from apply_service.edit.read.segment import Snippet
from apply_service.edit.syntax.syntax import SyntaxTree, parse

__all__ = ["MergePlan", "plan_merge", "splice"]


@dataclass(frozen=True, kw_only=True)
class MergePlan:
    """All valid merges of an original and a snippet, as placements.

    `candidates` hold the placements a segment, best first, by the segments of the snippet;
    `order` lists the segments as they follow one another in the file. `is_unique` says that the
    best path is the only one worth considering: no decision is open.
    """

    original_lines: Sequence[str]
    candidates: tuple[tuple[Placement, ...], ...]
    order: tuple[int, ...]
    removed: tuple[RemovedSpan, ...] = ()
    findings: tuple[Finding, ...] = ()
    is_unique: bool = False

    @cached_property
    def best(self) -> MergePath | None:
        """The heaviest valid merge; None if there is none."""
        return next(self.paths(1), None)

    def num_paths(self, limit: int) -> int:
        """How many valid merges there are, counted up to `limit`."""
        return min(self._search.num_paths, limit) if self._is_possible else 0

    def paths(self, limit: int) -> Iterator[MergePath]:
        """At most `limit` valid merges, the heaviest first."""
        if not self._is_possible:
            return
        for placements in islice(self._search.paths(), limit):
            yield MergePath(placements=placements, removed=self.removed)

    def accepts(
        self, result_lines: Sequence[str], *, ignores_blank_lines: bool = False
    ) -> MergePath | None:
        """The valid merge that `result_lines` is, or None.

        Instruction comments may be kept or left out; with `ignores_blank_lines` the number of
        blank lines does not matter anywhere.
        """
        if not self._is_possible:
            return None
        membership = Membership(
            self.original_lines,
            self._layers,
            self.removed,
            ignores_blank_lines=ignores_blank_lines,
        )
        return membership.find(result_lines)

    @property
    def _is_possible(self) -> bool:
        return not any(finding.severity == "error" for finding in self.findings)

    @cached_property
    def _layers(self) -> list[tuple[Placement, ...]]:
        return [self.candidates[number] for number in self.order]

    @cached_property
    def _search(self) -> PathSearch:
        return PathSearch(self._layers)


def plan_merge(
    original_lines: Sequence[str],
    snippet: Snippet,
    *,
    tree: SyntaxTree | None = None,
    language: str | None = None,
) -> MergePlan:
    """Find the placements of all segments and the best merge.

    `tree` is the parsed original; without it the original is parsed if `language` has a grammar.
    Definitions are otherwise found by their look.
    """
    if tree is None:
        tree = parse(original_lines, language)
    drawn = MergePlanner(original_lines, snippet, tree).draw()
    plan = MergePlan(
        original_lines=original_lines,
        candidates=drawn.candidates,
        order=drawn.order,
        removed=drawn.removed,
        findings=drawn.findings,
    )
    if plan.best is None:
        return plan
    is_unique = not drawn.findings and all(
        placement.is_certain for placement in plan.best.placements
    )
    return replace(plan, is_unique=is_unique)
