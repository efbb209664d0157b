"""What `unified_diff` writes is applied by `git apply` and `patch`, byte for byte."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apply_service.edit.text.diff import unified_diff

PAIRS = [
    ("a\nb\nc\n", "a\nB\nc\n"),
    ("a\nb\nc\n", "a\nB\nc"),
    ("a\nb\nc", "a\nB\nc\n"),
    ("a\nb\nc", "a\nb\nc\nd"),
    ("a\r\nb\r\nc\r\n", "a\r\nB\r\nc\r\n"),
    ("a\r\nb\nc\r\n", "a\r\nb\r\nc\r\n"),
    ("a\r\nb", "a\r\nb\r\n"),
    ("", "a\nb\n"),
    ("a\nb\n", ""),
    ("a\n", "\n"),
    ("\n", "a"),
    ("x\n" * 40, "x\n" * 20 + "new\n" + "x\n" * 20),
    (
        "".join(f"{n}\n" for n in range(60)),
        "".join(f"{n}\n" for n in range(60) if n not in (5, 50)),
    ),
    ("a\x0cb\nc\u2028d\n", "a\x0cb\nnew\u2028d\n"),
    ("a\rb\nc\n", "a\rb\nd\n"),
    ("--- a\n+++ b\n", "--- a\n+++ c\n"),
]


@pytest.mark.parametrize("tool", ["git", "patch"])
@pytest.mark.parametrize(("old", "new"), PAIRS)
@pytest.mark.parametrize("name", ["f.txt", "a folder/f g.txt"])
def test_tools_apply_it(tmp_path: Path, tool: str, old: str, new: str, name: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    target = tmp_path / name
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(old.encode())
    command = {"git": ["git", "apply"], "patch": ["patch", "-p1", "--binary", "-s"]}[tool]
    completed = subprocess.run(
        command,
        input=unified_diff(old, new, path=name).encode(),
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr.decode()
    assert (target.read_bytes() if target.exists() else b"") == new.encode()


def test_equal_texts_have_no_diff() -> None:
    assert unified_diff("a\n", "a\n") == ""
    assert unified_diff("", "") == ""


def test_odd_names_are_quoted() -> None:
    diff = unified_diff("a\n", "b\n", path='od"d\n.py')
    assert diff.startswith('--- "a/od\\"d\\n.py"\n+++ "b/od\\"d\\n.py"\n@@ -1 +1 @@\n')
    assert unified_diff("a\n", "b\n", path="/x.py").startswith("--- a/x.py\n")


LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\r\n", "\n"]), max_size=20)


@given(LINES, LINES, st.sampled_from(["", "tail"]), st.sampled_from(["", "tail"]))
def test_it_rebuilds_the_new_text(
    old: list[str], new: list[str], old_tail: str, new_tail: str
) -> None:
    old_text, new_text = "".join(old) + old_tail, "".join(new) + new_tail
    assert _apply(old_text, unified_diff(old_text, new_text)) == new_text


def _apply(old_text: str, diff: str) -> str:
    """A reader of unified diffs, written for this test from their definition."""
    if not diff:
        return old_text
    old = old_text.split("\n")
    old = [line + "\n" for line in old[:-1]] + ([old[-1]] if old[-1] else [])
    result: list[str] = []
    place = 0
    rows = diff.split("\n")[2:-1]
    for number, row in enumerate(rows):
        text = row[1:] + ("" if rows[number + 1 : number + 2][:1] == [NO_NEWLINE] else "\n")
        if row.startswith("@@"):
            start, _, length = row.split()[1][1:].partition(",")
            begin = int(start) - (0 if length == "0" else 1)
            result += old[place:begin]
            place = begin
        elif row.startswith("\\"):
            continue
        elif row.startswith("+"):
            result.append(text)
        else:
            assert old[place] == text
            result += [text] if row.startswith(" ") else []
            place += 1
    return "".join(result + old[place:])


NO_NEWLINE = "\\ No newline at end of file"
