"""Edits for editors, and the text that a buffer has to hold behind each of them."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from pathlib import Path

import msgspec

from apply_service.cli.answer import answer_edit
from apply_service.config import Settings
from apply_service.evaluate.cases.case_file import read_cases
from apply_service.http.problems import Problem
from apply_service.http.schemas import ApplyBody
from apply_service.observe.progress import Progress

_ROOT = Path(__file__).parents[3]
_CASES = [_ROOT / f"tests/cases/{name}_agent_edits.jsonl.gz" for name in ("unseen", "later")]
_NO_MODEL = Settings(use_model="never")
_END = "\r\n# é👩‍👩‍👧 e\u0301\r\n"

GREETING = "import sys\r\n\r\n\r\ndef greet(name):\r\n    print('Hellö 👋🏽 ' + name)\r\n"
UPDATE = (
    "# ... existing code ...\ndef greet(name, mark='!'):\n    print('Hellö 👋🏽 ' + name + mark)\n"
)
DOUBTFUL = "a = 1\n\nb = 2\n\na = 1\n"
DOUBT = "# ...\na = 3\n# ...\n"


def decorated_cases(count: int, generator: random.Random) -> Iterator[tuple[str, str, str]]:
    """Name, original and update of so many real edits.

    Every second original has line ends and characters that editors count otherwise.
    """
    for path in _CASES:
        cases = generator.sample(list(read_cases(path)), count // len(_CASES))
        for number, case in enumerate(cases):
            original = _decorate(case.original) if number % 2 else case.original
            yield case.path, original, case.update


def merged_of(original: str, update: str, path: str) -> str:
    """The text of a merge by the same functions without an editor, by its first choice in doubt."""
    body = ApplyBody(original=original, update=update, path=path)
    answer = answer_edit(body, _NO_MODEL, {}, Progress(io.StringIO()))
    if answer.choices:
        body = msgspec.structs.replace(body, resolve=answer.choices[0].id)
        answer = answer_edit(body, _NO_MODEL, {}, Progress(io.StringIO()))
    if isinstance(answer, Problem) or answer.status == "needs_review":
        return original
    assert isinstance(answer.merged, str)
    return answer.merged


def _decorate(text: str) -> str:
    return text.rstrip("\n").replace("\r\n", "\n").replace("\n", "\r\n") + _END
