"""What every driver is told, by one object of JSON on stdin, and how it says what came of it."""

import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Task:
    url: str
    key: str
    folder: str
    file: str
    original: str
    update: str
    instruction: str
    stream: bool
    # A line beside the place that an edit in doubt means; without it, a question is an error.
    chosen: str | None = None

    @property
    def message(self) -> str:
        return (
            f"<instruction>{self.instruction}</instruction>\n"
            f"<code>{self.original}</code>\n<update>{self.update}</update>"
        )


def read_task() -> Task:
    return Task(**json.load(sys.stdin))


def tell_pieces(pieces: list[str]) -> None:
    print(json.dumps({"text": "".join(pieces), "pieces": len(pieces)}))


def tell_error(error: Exception) -> None:
    print(json.dumps({"error": f"{type(error).__name__}: {error}"}))


def answer(
    task: Task, ask: Callable[[dict[str, Any]], Iterable[str]], error_type: type[Exception]
) -> None:
    """Tell what comes of an edit; the answer to a question is written to the file at once."""
    try:
        tell_pieces(list(ask({})))
    except error_type as error:
        choices = (error.body.get("error") or error.body).get("choices") or []
        ids = [choice["id"] for choice in choices if task.chosen and task.chosen in choice["diff"]]
        if not ids:
            tell_error(error)
            return
        text = "".join(ask({"resolve": ids[0]}))
        Path(task.folder, task.file).write_bytes(text.encode())
        print(json.dumps({"text": None}))
