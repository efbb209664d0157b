"""The deterministic merge alone as a contender: no model is loaded, torch is not imported."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from apply_service.bench.case_result import Answer, notes_of
from apply_service.bench.cases import Case
from apply_service.edit.languages import language_of
from apply_service.edit.merge import MergePlan, plan_merge, splice
from apply_service.edit.segment import Snippet
from apply_service.edit.snippet import SnippetError, read_snippet
from apply_service.edit.syntax import SyntaxTree, parse
from apply_service.edit.text_file import TextFile
from apply_service.edit.verdict import judge

_NOT_UNIQUE = "the anchors leave more than one place; the service would ask its model"


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """A case as the merge sees it. `refusal` says why an update cannot be read."""

    original: TextFile
    language: str | None
    tree: SyntaxTree | None = None
    snippet: Snippet | None = None
    plan: MergePlan | None = None
    refusal: str = ""

    @property
    def is_unique(self) -> bool:
        """Whether the anchors leave one place to every segment."""
        return self.plan is not None and self.plan.is_unique


def plan_case(case: Case) -> PlannedCase:
    """Read and place the update of a case, as the pipeline does before it asks a model."""
    original = TextFile.from_text(case.original)
    update_lines = TextFile.from_text(case.update).lines
    language = language_of(case.path, case.language, original.lines)
    try:
        snippet = read_snippet(update_lines, original.lines, path=case.path, language=language)
    except SnippetError as error:
        return PlannedCase(original, language, refusal=str(error))
    tree = parse(original.lines, language)
    plan = plan_merge(original.lines, snippet, tree=tree, language=language)
    return PlannedCase(original, language, tree, snippet, plan)


class MergeContender:
    """Answers with the best path of the merge, or refuses where there is none.

    As in the service, a merge that no model has confirmed is applied only with unique anchors.
    """

    name = "merge alone"

    def answer(self, case: Case) -> Answer:
        """The merge of one case with its verdict."""
        started = time.perf_counter()
        answer = _judged(plan_case(case))
        return replace(answer, source="merge", seconds=time.perf_counter() - started)

    def close(self) -> None:
        """It holds nothing."""


def _judged(planned: PlannedCase) -> Answer:
    if planned.plan is None or planned.snippet is None:
        return Answer(status="rejected", notes=(planned.refusal,))
    best = planned.plan.best
    if best is None:
        return Answer(status="rejected", notes=notes_of(planned.plan.findings))
    original = planned.original
    lines = splice(original.lines, best)
    verdict = judge(original.lines, planned.snippet, lines, plan=planned.plan, tree=planned.tree)
    status, notes = verdict.status, notes_of(verdict.findings)
    if status == "applied" and not planned.is_unique:
        status, notes = "needs_review", (*notes, _NOT_UNIQUE)
    return Answer(status=status, text=original.join(lines), notes=notes)
