"""Edits of real files, replayed by the document that VS Code's language servers use."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from apply_service.edit.text.text_edits import text_edits
from apply_service.evaluate.cases.case_file import read_cases

ROOT = Path(__file__).parents[3]
CLIENT = ROOT / "clients" / "typescript"
PACKAGE = CLIENT / "node_modules" / "vscode-languageserver-textdocument"
NODE = shutil.which("node")
NUM_CASES = 600

pytestmark = pytest.mark.skipif(
    NODE is None or not PACKAGE.exists(), reason="Node.js or the client's packages are missing"
)


def test_an_editor_gets_the_same_text() -> None:
    cases = [
        case
        for path in sorted((ROOT / "tests/cases").glob("*_agent_edits.jsonl.gz"))
        for case in read_cases(path)
    ]
    generator = random.Random(0)
    pairs = [
        (odd(case.original, generator), odd(case.expected, generator))
        for case in generator.sample(cases, NUM_CASES)
    ]
    lines = [
        json.dumps(
            {
                "old": old,
                "edits": [
                    {
                        "range": {
                            "start": {"line": one.start.line, "character": one.start.character},
                            "end": {"line": one.end.line, "character": one.end.character},
                        },
                        "newText": one.text,
                    }
                    for one in text_edits(old, new)
                ],
            }
        )
        for old, new in pairs
    ]
    assert NODE is not None
    run = subprocess.run(
        [NODE, str(Path(__file__).with_name("replay_edits.mjs")), str(CLIENT / "package.json")],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=True,
    )
    replayed = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(replayed) == NUM_CASES
    assert [text == new for text, (_, new) in zip(replayed, pairs, strict=True)] == (
        [True] * NUM_CASES
    )


def odd(text: str, generator: random.Random) -> str:
    """With what editors count in other ways: line ends, emoji, marks, no last line end."""
    text = text.replace("a", generator.choice(["a", "😀", "e\u0301"]), 3)
    text = text.replace("\n", generator.choice(["\n", "\r\n"]))
    return text if generator.random() < 0.5 else text.rstrip()
