"""Plans that are kept for edits that are sent again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from apply_service.apply.edit_request import EditRequest, SamplingOptions
from apply_service.apply.planning.edit_plan import EditPlan, plan_edit
from apply_service.apply.planning.plan_memory import PlanMemory
from apply_service.edit.text.text_file import TextFile
from batching.request import Priority

ORIGINAL = "a = 1\nb = 2\nc = 3\n"
EDIT = EditRequest(
    original=TextFile.from_text(ORIGINAL),
    update="b = 4\n",
    path="x.py",
    language="python",
)


def plan(edit: EditRequest) -> EditPlan:
    return plan_edit(edit, max_file_bytes=10_000)


def edits(num: int) -> list[EditRequest]:
    """Edits of equal size."""
    return [replace(EDIT, update=f"b = {5 + number}\n") for number in range(num)]


def test_what_planning_does_not_look_at_may_differ() -> None:
    memory = PlanMemory()
    assert memory.recall(EDIT) is None
    kept = plan(EDIT)
    memory.keep(kept)
    other = replace(
        EDIT,
        original=TextFile.from_text(ORIGINAL),
        prediction=ORIGINAL,
        scope="file",
        has_fallback=False,
        constraint="none",
        use_model="never",
        sampling=SamplingOptions(temperature=1.0),
        max_answer_tokens=9,
        max_draft_tokens=0,
        priority=Priority.BATCH,
        deadline_s=1.0,
    )
    assert memory.recall(other) is kept
    again = plan(other)
    assert (again.snippet, again.merge, again.decision) == (
        kept.snippet,
        kept.merge,
        kept.decision,
    )


@pytest.mark.parametrize(
    "change",
    [
        {"original": TextFile.from_text("a = 1\nb = 3\nc = 3\n")},
        {"original": TextFile.from_bytes(ORIGINAL.replace("\n", "\r\n").encode())},
        {"original": TextFile.from_bytes(b"\xef\xbb\xbf" + ORIGINAL.encode())},
        {"update": "b = 5\n"},
        {"instruction": "Set b to four."},
        {"path": "x.pyi"},
        {"language": "ruby"},
        {"checks": "off"},
        {"cache_salt": b"another tenant"},
    ],
)
def test_what_planning_looks_at_may_not_and_no_tenant_sees_the_others(
    change: dict[str, object],
) -> None:
    memory = PlanMemory()
    memory.keep(plan(EDIT))
    assert memory.recall(replace(EDIT, **change)) is None  # type: ignore[arg-type]


def test_the_plan_unused_longest_goes_first() -> None:
    memory = PlanMemory(max_plans=2)
    first, second, third = edits(3)
    memory.keep(plan(first))
    memory.keep(plan(second))
    assert memory.recall(first) is not None
    memory.keep(plan(third))
    assert [memory.recall(one) is not None for one in (first, second, third)] == [True, False, True]
    assert len(memory) == 2


def test_the_texts_of_all_plans_together_are_limited() -> None:
    first, second, third = edits(3)
    memory = PlanMemory(max_characters=2 * plan(first).num_characters)
    for one in (first, second, first, third):
        memory.keep(plan(one))
    assert [memory.recall(one) is not None for one in (first, second, third)] == [False, True, True]
    large = replace(EDIT, original=TextFile.from_text(ORIGINAL + "d = 4\n" * 100))
    memory.keep(plan(large))
    assert memory.recall(large) is None
    assert len(memory) == 2
