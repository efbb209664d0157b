"""Edits in doubt as a file of questions, and a file of answers to them.

A question is one JSON object a line, with the choices of a step. Its answer has the same `step` and
the id of a choice as `resolve`, so a line of the questions with a `resolve` added is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from apply_client.batch.edits_file import BatchFile
from apply_client.batch.journal import StepOutcome
from apply_client.batch.patch_writer import whole_file
from apply_client.protocol.wire import Choice, Finding
from apply_client.regular_file import open_regular
from apply_client.shown_text import shown_line
from apply_client.update_text import InputError, file_error


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A step that needs an answer: what its update may mean, the likeliest first."""

    step: str
    edit: str
    path: str
    instruction: str | None
    findings: tuple[Finding, ...]
    choices: tuple[Choice, ...]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The choice of a step; without one it stays open. Other members are not read."""

    step: str
    resolve: str | None = None


def write_questions(path: Path, batch: BatchFile, outcomes: Mapping[str, StepOutcome]) -> int:
    """Write the questions of all steps in doubt, in their order; how many they are.

    A file is replaced whole or not at all. Raises InputError or DiskError.
    """
    steps = [step for steps in batch.steps_by_path.values() for step in steps]
    lines: list[bytes] = []
    for step in sorted(steps, key=lambda step: (step.offset, step.part)):
        outcome = outcomes.get(step.key)
        if outcome is None or outcome.is_written or not outcome.choices:
            continue
        edit = batch.read(step)
        question = Question(
            step=step.key,
            edit=edit.label,
            path=edit.change.path,
            instruction=edit.instruction,
            findings=outcome.findings,
            choices=outcome.choices,
        )
        lines.append(msgspec.json.encode(question) + b"\n")
    try:
        with whole_file(path) as stream:
            stream.writelines(lines)
    except OSError as error:
        raise file_error(f"write {path}", error) from error
    return len(lines)


def read_answers(path: Path) -> dict[str, str]:
    """The chosen ids by step; lines without `resolve` are questions still. Raises InputError."""
    try:
        with open_regular(path) as stream:
            content = stream.read()
    except OSError as error:
        raise file_error(f"read {shown_line(path)}", error) from error
    answers: dict[str, str] = {}
    for number, line in enumerate(content.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            answer = msgspec.json.decode(line, type=Answer)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError(
                f"{path}: line {number} is no answer ({error}); write a question's `step` and, as"
                " `resolve`, the `id` of one of its choices"
            ) from error
        if answer.resolve is not None:
            answers[answer.step] = answer.resolve
    return answers
