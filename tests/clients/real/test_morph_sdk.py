"""Morph's own SDK, at its defaults, edits large files on disk by a server with the real model."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from client_edits import ClientEdit
from morph_records import in_our_words, morph_records
from real_clients import ANSWER_LIMIT_S, DRIVERS, MORPH_SDK, NODE, Outcome, Server, Task

NUM_CHARACTERS = 200_000

pytestmark = [
    pytest.mark.clients,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        MORPH_SDK.version() is None,
        reason="Morph's SDK is not installed; `make test-clients` does it",
    ),
]


def run_record(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the SDK sends for each edit, and what it makes of the answer."""
    run = subprocess.run(
        [str(NODE), str(DRIVERS / "morph_record.mjs")],
        input="".join(json.dumps(line) + "\n" for line in lines),
        capture_output=True,
        encoding="utf-8",
        timeout=ANSWER_LIMIT_S,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.split("\n")[:-1]]


def edit(server: Server, path: Path, update: str) -> Outcome:
    """Have the SDK edit a file in its place."""
    text = path.read_bytes().decode()
    change = ClientEdit("large file", path.name, text, update, None, "I make one change.")
    return MORPH_SDK.run(Task(server, change, path.parent))


def step(number: int, *, more: str = "") -> str:
    return (
        f"def step_{number}(value: int) -> int:\n"
        f'    """Add {number} to the value — größer wird er nicht, sagt 東京 🦀."""\n'
        f'    print("step {number} begins with", value)\n'
        f"{more}"
        f"    return value + {number}\n"
    )


def large_module() -> tuple[str, int]:
    """A file of a few more characters than are wanted, and the number of its functions."""
    pieces = ['"""Steps."""\n\nimport sys\n']
    length = 0
    while length < NUM_CHARACTERS:
        pieces.append(f"\n\n{step(len(pieces))}")
        length += len(pieces[-1])
    return "".join(pieces), len(pieces) - 1


MARKER = "# ... existing code ...\n"


def edits_of(num_steps: int) -> dict[str, list[int]]:
    """The functions that each edit changes."""
    middle = num_steps // 2
    return {
        "the beginning": [1],
        "the middle": [middle],
        "the end": [num_steps],
        "two places": [middle // 2, middle + middle // 2],
    }


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_four_edits_of_a_large_file_are_right_on_disk(
    server: Server, tmp_path: Path, newline: str
) -> None:
    text, num_steps = large_module()
    path = tmp_path / "steps.py"
    path.write_text(text, encoding="utf-8", newline=newline)
    assert len(text) >= NUM_CHARACTERS
    for name, numbers in edits_of(num_steps).items():
        more = f'    print("{name}, größer und 🐍", file=sys.stderr)\n'
        update = MARKER
        for number in numbers:
            update += f"\n\n{step(number, more=more)}\n\n{MARKER}"
            text = text.replace(step(number), step(number, more=more))
        result = edit(server, path, update)
        assert result.error is None, name
        assert path.read_bytes() == text.replace("\n", newline).encode(), name


def test_a_large_page_whose_fragments_are_tags(server: Server, tmp_path: Path) -> None:
    def row(number: int) -> str:
        return (
            f'    <li class="one-of-the-many-rows">\n      Row {number}, größer & < 9\n    </li>\n'
        )

    rows = [row(number) for number in range(3000)]
    text = f"<!DOCTYPE html>\n<html>\n  <ul>\n{''.join(rows)}  </ul>\n</html>\n"
    path = tmp_path / "rows.html"
    path.write_text(text, encoding="utf-8")
    assert len(text) >= NUM_CHARACTERS
    more = "    <li>one more</li>\n"
    marker = "<!-- ... existing code ... -->\n"
    result = edit(server, path, f"{marker}{row(1700)}{more}{row(1701)}{marker}")
    assert result.error is None
    assert path.read_text(encoding="utf-8") == text.replace(row(1700), row(1700) + more)


def test_a_file_that_the_sdk_would_garble_stays_as_it_was(server: Server, tmp_path: Path) -> None:
    """Its own text has the mark up to which the SDK drops an answer."""
    text = large_module()[0] + "\n\n# ⟪MORPH_CODE_BEGIN_0⟫ ends the table\n"
    path = tmp_path / "marked.py"
    path.write_text(text, encoding="utf-8")
    result = edit(server, path, f"{MARKER}\n\n{step(1, more='    print()' + chr(10))}\n\n{MARKER}")
    assert "anchorCompaction: false" in str(result.error)
    assert path.read_text(encoding="utf-8") == text


def test_the_recorded_requests_are_what_the_sdk_sends() -> None:
    records = morph_records()
    fields = ("original", "update", "instruction", "expected")
    lines = [{name: getattr(record, name) for name in fields} for record in records]
    for record, sent in zip(records, run_record(lines), strict=True):
        (message,) = sent["body"]["messages"]
        message["content"] = in_our_words(message["content"])
        assert sent == {
            "headers": record.headers,
            "body": record.body,
            "merged": record.expected,
        }, record.name
