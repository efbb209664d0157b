"""The one JSON format of results: `run` writes it, `score`, `report` and `compare` read it.

A text that is one of the task's own is stored as its number, so that files stay small.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lazy_edit_bench.judge import Answer, Judgement, file_text, judge
from lazy_edit_bench.task import BenchError, Task

FORMAT = "lazy-edit-bench/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One task's answer, judged."""

    id: str
    treat: str
    answer: Answer
    judgement: Judgement


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A run of one system over one split."""

    system: str
    version: str
    command: str
    split: str
    tasks_hash: str
    date: str
    machine: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = field(default=())


def hash_of(tasks: Iterable[Task]) -> str:
    """Two runs may be compared where this is equal."""
    digest = hashlib.sha256()
    for task in tasks:
        for part in (task.id, task.original, task.update, *task.results):
            digest.update(part.encode() + b"\0")
    return digest.hexdigest()[:16]


def write_result(path: Path, result: Result, tasks: Sequence[Task]) -> None:
    """Write a run."""
    by_id = {task.id: task for task in tasks}
    head = {name: value for name, value in asdict(result).items() if name != "rows"}
    rows = [_packed(row, by_id[row.id]) for row in result.rows]
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"format": FORMAT, **head}, ensure_ascii=False)[:-1]
    path.write_text(f'{text}, "answers": [\n{lines}\n]}}\n', encoding="utf-8")


def read_result(path: Path, tasks: Sequence[Task]) -> Result:
    """Read a run and judge it anew. Raises BenchError if it is not of these tasks."""
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
        if read.pop("format") != FORMAT:
            raise BenchError(f"{path} has another format than {FORMAT}")
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise BenchError(f"{path} is no result file ({error}); write one with `run`") from error
    if read["tasks_hash"] != hash_of(tasks):
        raise BenchError(f"{path} is of other tasks than this split; run the system again")
    by_id = {task.id: task for task in tasks}
    rows = tuple(_unpacked(row, by_id[row["id"]]) for row in read.pop("answers"))
    return Result(**{**read, "notes": tuple(read["notes"])}, rows=rows)


def judged(task: Task, answer: Answer) -> Row:
    """The answer of one task with its judgement."""
    return Row(id=task.id, treat=task.treat, answer=answer, judgement=judge(task, answer))


def _packed(row: Row, task: Task) -> dict[str, Any]:
    texts = [file_text(task), *(file_text(task, result) for result in task.results)]

    def short(text: str) -> str | int:
        return texts.index(text) if text in texts else text

    answer = row.answer
    packed: dict[str, Any] = {
        "id": row.id,
        "status": answer.status,
        "outcome": row.judgement.outcome,
        "seconds": round(answer.seconds, 4),
    }
    if answer.text is not None:
        packed["text"] = short(answer.text)
    if answer.choices:
        packed["choices"] = [short(choice) for choice in answer.choices]
    if answer.tokens_in or answer.tokens_out:
        packed["tokens"] = [answer.tokens_in, answer.tokens_out]
    if answer.note:
        packed["note"] = answer.note
    return packed


def _unpacked(packed: dict[str, Any], task: Task) -> Row:
    texts = [file_text(task), *(file_text(task, result) for result in task.results)]

    def whole(text: str | int) -> str:
        return texts[text] if isinstance(text, int) else text

    tokens_in, tokens_out = packed.get("tokens", (0, 0))
    return judged(
        task,
        Answer(
            status=packed["status"],
            text=whole(packed["text"]) if "text" in packed else None,
            choices=tuple(whole(choice) for choice in packed.get("choices", ())),
            seconds=packed["seconds"],
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            note=packed.get("note", ""),
        ),
    )
