"""Edits of compacted files as Morph's SDK sends them.

`tests/cases/morph_compacted.jsonl` has one a line: an edit, the result that must come, and the
headers and body of the SDK's request. `tests/clients/real/test_morph_sdk.py` records them anew.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATH = Path(__file__).parent / "cases" / "morph_compacted.jsonl"


@dataclass(frozen=True, slots=True)
class MorphRecord:
    """One edit and the request that the SDK makes of it."""

    name: str
    original: str
    update: str
    instruction: str
    expected: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def content(self) -> str:
        """The message."""
        content: str = self.body["messages"][0]["content"]
        return content

    def with_content(self, content: str) -> dict[str, Any]:
        """The body with another message."""
        return self.body | {"messages": [{"role": "user", "content": content}]}


def morph_records() -> list[MorphRecord]:
    """All of them, in the order of the file."""
    return [MorphRecord(**json.loads(line)) for line in PATH.read_text().split("\n")[:-1]]
