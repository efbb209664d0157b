"""Edits for every real client: files, updates and expected results."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import apply_service.cli.demo

_EXAMPLE = Path(apply_service.cli.demo.__file__).parent / "example"
_NUM_LARGE_CHARACTERS = 200_000
_MARKER = "# ... existing code ...\n"


@dataclass(frozen=True, slots=True)
class ClientEdit:
    """One edit of one file; `expected` is None where the service must refuse it."""

    name: str
    file: str
    original: str
    update: str
    expected: str | None
    instruction: str = "Check the value first."


def _step(number: int, *, note: str = "", check: str = "") -> str:
    return (
        f"def step_{number}(value: int) -> int:\n"
        f'    """Add {number} to the value.{note}"""\n'
        f"{check}"
        f"    return value + {number}\n"
    )


def _edit(
    name: str, num_steps: int, *, note: str = "", text: str = "", newline: str = "\n"
) -> ClientEdit:
    """An edit that adds a line to the middle one of several functions."""
    middle = num_steps // 2
    steps = [_step(number, note=note) for number in range(num_steps)]
    before = "\n\n".join(['"""Steps."""\n', *steps])
    check = f'    check(value, "{text}")\n' if text else "    check(value)\n"
    changed = _step(middle, note=note, check=check)
    return ClientEdit(
        name,
        "steps.py",
        before.replace("\n", newline),
        f"{_MARKER}\n\n{changed}\n\n{_MARKER}",
        before.replace(_step(middle, note=note), changed).replace("\n", newline),
    )


# A line separator ends lines for careless readers of streams.
_NOTE = " It is one of many — 東京 🦀\u2028 —, and the file has as many as a large file has."
_NUM_LARGE_STEPS = _NUM_LARGE_CHARACTERS // len(_step(100, note=_NOTE))

SMALL = _edit("small file", 3)
LARGE = _edit("200 KB file", _NUM_LARGE_STEPS, note=_NOTE)
CRLF = _edit("CRLF", 3, newline="\r\n")
UNICODE = _edit(
    "Unicode", 3, note=" größer 東京 🦀 e\u0301 שלום \u2028\u2029\x85", text="é 🐍 \u2028"
)
DOUBTFUL = ClientEdit(
    "doubtful edit",
    "gate.py",
    (_EXAMPLE / "gate.py").read_text(),
    (_EXAMPLE / "ambiguous.txt").read_text(),
    None,
    "Count the changes.",
)
# The doubtful edit means the definition with this line, as its writer knows, and makes this file.
MEANT = "self.is_open = False"
RESOLVED = DOUBTFUL.original + "            self.num_changes += 1\n"
