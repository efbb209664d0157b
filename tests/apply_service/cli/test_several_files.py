"""`apply` of several files by one patch: all are written or none, and all are taken back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from apply_service.cli.main import main

ONE = "def one():\n    return 1\n"
TWO = "def two():\r\n    return 2\r\n"
PATCH = """\
*** Begin Patch
*** Update File: one.py
@@ def one():
-    return 1
+    return 11
*** Update File: two.py
@@ def two():
-    return 2
+    return 22
*** Add File: three.py
+def three():
+    return 3
*** End Patch
"""
DIFF = """\
--- a/one.py
+++ b/one.py
@@ -1,2 +1,2 @@
 def one():
-    return 1
+    return 11
--- a/two.py
+++ b/two.py
@@ -1,2 +1,2 @@
 def two():
-    return 2
+    return 22
"""
Run = Callable[..., int]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `apply` in a folder with the files, `one.py` and `two.py` if none are named."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("APPLY_SERVICE_URL", raising=False)
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    Path("one.py").write_bytes(ONE.encode())
    Path("two.py").write_bytes(TWO.encode())
    Path("three.py").touch()
    Path("other.py").write_text("x = 1\n")

    def apply(patch: str, *more: str, files: tuple[str, ...] = ("one.py", "two.py")) -> int:
        Path("../patch").write_text(patch)
        return main(["apply", *files, "--update", "../patch", *more])

    return apply


def contents() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path().iterdir()}


AFTER = {
    "one.py": b"def one():\n    return 11\n",
    "two.py": b"def two():\r\n    return 22\r\n",
    "three.py": b"def three():\n    return 3\n",
}


def test_a_patch_of_several_files_is_written_and_taken_back(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents()
    assert run(PATCH, "--write", files=("one.py", "two.py", "three.py", "other.py")) == 0
    assert contents() == {**before, **AFTER}
    shown = capsys.readouterr()
    assert shown.err == "other.py: the update does not speak of it\n"
    assert shown.out == ""
    assert main(["undo"]) == 0
    assert contents() == before
    assert capsys.readouterr().out.count("is as it was before") == 3


def test_a_diff_of_several_files_is_shown(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents()
    assert run(DIFF, "--diff") == 0
    shown = capsys.readouterr().out
    assert shown.count("--- a/") == 2
    assert "+    return 22\r\n" in shown
    assert contents() == before
    assert run(DIFF, "--json") == 0
    files = json.loads(capsys.readouterr().out)["files"]
    assert [(one["path"], one["result"]["status"]) for one in files] == [
        ("one.py", "applied"),
        ("two.py", "applied"),
    ]
    assert run(DIFF, "--check") == 0
    assert capsys.readouterr().out == ""


def test_one_file_that_fails_keeps_all_from_being_written(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents()
    assert run(DIFF.replace("-    return 2\n", "-    return other\n"), "--write") in (1, 4)
    assert contents() == before
    shown = capsys.readouterr().err
    assert "two.py: " in shown
    assert shown.endswith("nothing was written, because of two.py\n")


def test_a_file_that_cannot_be_written_takes_the_others_back(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents()
    Path("two.py").chmod(0o444)
    assert run(DIFF, "--write") == 1
    assert contents() == before
    assert "two.py is read-only" in capsys.readouterr().err


def test_nothing_is_undone_if_one_file_has_changed_since(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(DIFF, "--write") == 0
    Path("two.py").write_text("mine\n")
    after = contents()
    assert main(["undo"]) == 1
    assert contents() == after
    assert "two.py has changed since it was written" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("patch", "files", "more", "code", "said"),
    [
        (PATCH, ("one.py", "two.py"), ("--write",), 2, "apply one.py two.py three.py"),
        (DIFF, ("one.py", "other.py"), ("--write",), 2, "apply one.py two.py"),
        (
            "*** Begin Patch\n*** Delete File: one.py\n*** End Patch\n",
            ("one.py", "two.py"),
            ("--write",),
            1,
            "the update is to delete one.py, which is not done here",
        ),
        ("x = 2\n", ("one.py", "two.py"), ("--diff",), 1, "names none; send a `*** Begin Patch`"),
        (DIFF, ("one.py", "one.py"), ("--diff",), 2, "several FILEs are different ones"),
        (DIFF, ("one.py", "-"), ("--diff",), 2, "none of them is stdin"),
        (DIFF, ("one.py", "two.py"), (), 2, "add --write, --diff, --json or --check"),
        (DIFF, ("one.py", "two.py"), ("--diff", "--path", "a.py"), 2, "--path and --resolve are"),
        (DIFF, ("one.py", "two.py"), ("--diff", "--format", "old_new"), 2, "--format old_new has"),
        (DIFF, ("one.py", "none.py"), ("--diff",), 1, "none.py does not exist"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is(
    run: Run,
    patch: str,
    files: tuple[str, ...],
    more: tuple[str, ...],
    code: int,
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = contents()
    assert run(patch, *more, files=files) == code
    assert said in capsys.readouterr().err
    assert contents() == before
