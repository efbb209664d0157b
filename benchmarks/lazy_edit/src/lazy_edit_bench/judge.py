"""What an answer is worth: the first difference that matters is whether the caller was told.

`right`: applied, and byte for byte a right text. `silent_harmful`: said to be applied and wrong.
`silent_harmless`: the same, but only white space at line ends, blank lines, line endings, the byte
order mark or the final newline differ. A guess where the system had to ask or refuse is harmful.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal, get_args

from lazy_edit_bench.task import Task

Status = Literal["applied", "asked", "refused", "failed", "not_offered"]
Outcome = Literal[
    "right",
    "asked_rightly",
    "refused_rightly",
    "silent_harmful",
    "silent_harmless",
    "asked_needlessly",
    "refused_needlessly",
    "failed",
    "not_offered",
]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
RIGHT = frozenset({"right", "asked_rightly", "refused_rightly"})
BYTE_ORDER_MARK = "\ufeff"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a system made of a task. Texts are whole files as they would be written, mark included.

    `seconds` is wall time seen by the caller; tokens are what the system itself reports.
    """

    status: Status
    text: str | None = None
    choices: tuple[str, ...] = ()
    seconds: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """An outcome with what else was seen.

    `after_question`: one question, answered as the caller means it, leads to a right end.
    `bytes_outside`: bytes of original lines that should have stayed and did not.
    """

    outcome: Outcome
    after_question: bool = False
    bytes_outside: int = 0
    final_newline_kept: bool = True
    encoding_kept: bool = True


def file_text(task: Task, text: str | None = None) -> str:
    """A text of the task (unset, its original) as its file holds it."""
    mark = BYTE_ORDER_MARK if task.encoding == "utf-8-sig" else ""
    return mark + (task.original if text is None else text)


def judge(task: Task, answer: Answer) -> Judgement:
    """Hold an answer against its task."""
    right_texts = [file_text(task, result) for result in task.results]
    if answer.status == "asked":
        offered = any(choice in right_texts for choice in answer.choices)
        asked_rightly = task.treat == "ask"
        outcome: Outcome = "asked_rightly" if asked_rightly else "asked_needlessly"
        return Judgement(outcome=outcome, after_question=offered and task.treat != "refuse")
    if answer.status == "refused":
        rightly = task.treat == "refuse"
        outcome = "refused_rightly" if rightly else "refused_needlessly"
        return Judgement(outcome=outcome, after_question=rightly)
    if answer.status != "applied":
        return Judgement(outcome=answer.status)
    got = answer.text or ""
    if got in right_texts and task.treat != "ask":
        return Judgement(outcome="right", after_question=True)
    if not right_texts or task.treat == "ask":
        original = file_text(task)
        harmless = got == original and task.treat == "refuse"
        return Judgement(outcome="silent_harmless" if harmless else "silent_harmful")
    expected = right_texts[0]
    harmless = any(_plain(got) == _plain(text) for text in right_texts)
    return Judgement(
        outcome="silent_harmless" if harmless else "silent_harmful",
        bytes_outside=_bytes_outside(file_text(task), expected, got),
        final_newline_kept=got.endswith("\n") == expected.endswith("\n"),
        encoding_kept=_form(got) == _form(expected),
    )


def _plain(text: str) -> list[str]:
    """The lines that mean something, white space at their ends cut."""
    lines = (line.rstrip() for line in text.removeprefix(BYTE_ORDER_MARK).splitlines())
    return [line for line in lines if line]


def _form(text: str) -> tuple[bool, bool]:
    """Byte-order mark, and whether lines end as Windows ends them."""
    return text.startswith(BYTE_ORDER_MARK), "\r\n" in text


def _bytes_outside(original: str, expected: str, got: str) -> int:
    old = original.splitlines(keepends=True)
    lost = _kept(old, expected) - _kept(old, got)
    return sum(len(old[index].encode()) for index in lost)


def _kept(old: list[str], text: str) -> set[int]:
    """Indices of the old lines that stand in the text, in order."""
    matcher = SequenceMatcher(None, old, text.splitlines(keepends=True), autojunk=False)
    return {block.a + at for block in matcher.get_matching_blocks() for at in range(block.size)}
