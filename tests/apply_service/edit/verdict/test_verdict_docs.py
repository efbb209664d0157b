"""Every example of docs/verdicts.md gets the finding that it stands for, or does not."""

from __future__ import annotations

import re

import pytest
from verdict_examples import DOCS, ROOT, Example, read_examples

from apply_service.edit.place.merge import MergePlan, plan_merge
from apply_service.edit.read.snippet import read_snippet
from apply_service.edit.syntax.syntax import parse
from apply_service.edit.verdict.verdict import judge

# They would need long examples.
WITHOUT_EXAMPLE = {"too_many_segments", "too_much_to_compare"}
# What the model says of its answer is another test's.
EXAMPLES = [example for example in read_examples() if example.told is None]


@pytest.mark.parametrize(
    "example", EXAMPLES, ids=lambda example: f"{example.code}-{example.triggers}"
)
def test_example(example: Example) -> None:
    tree = parse(example.original, "python")
    plan = plan_of(example.original, example.update)
    verdict = judge(
        example.original,
        plan.snippet or example.update,
        example.result,
        ending="length" if example.is_stopped else "complete",
        plan=plan,
        tree=tree,
    )
    codes = {finding.code for finding in verdict.findings}
    assert (example.code in codes) == example.triggers, verdict


def plan_of(original: list[str], update: list[str]) -> MergePlan:
    snippet = read_snippet(update, original, language="python")
    return plan_merge(original, update, snippet, language="python")


def test_every_code_has_an_example_of_both_kinds() -> None:
    checks = (ROOT / "apply_service" / "edit").rglob("*.py")
    used = {code for file in checks for code in re.findall(r'code="(\w+)"', file.read_text())}
    assert all(f"`{code}`" in DOCS for code in WITHOUT_EXAMPLE)
    used -= WITHOUT_EXAMPLE
    assert used == {example.code for example in EXAMPLES if example.triggers}
    assert used == {example.code for example in EXAMPLES if not example.triggers}
