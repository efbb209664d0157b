"""What every driver is told, by one object of JSON on stdin, and how it says what came of it."""

import json
import sys
from dataclasses import dataclass


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
