"""`apply-client apply` of several files by one patch: all are written or none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from apply_client.__main__ import main
from oracle_service import OracleService
from server_thread import serving

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
AFTER = {
    "one.py": b"def one():\n    return 11\n",
    "two.py": b"def two():\r\n    return 22\r\n",
}
Run = Callable[..., int]


@pytest.fixture(scope="module")
def url(tiny_model_dir: Path) -> Iterator[str]:
    oracle = OracleService(tiny_model_dir)
    oracle.service.default_use_model = "never"
    with serving(oracle.service) as address:
        yield address


@pytest.fixture
def run(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    Path("one.py").write_bytes(b"def one():\n    return 1\n")
    Path("two.py").write_bytes(b"def two():\r\n    return 2\r\n")
    Path("three.py").touch()
    Path("other.py").write_text("x = 1\n")

    def apply(patch: str, *more: str, files: tuple[str, ...] = ("one.py", "two.py")) -> int:
        Path("../patch").write_text(patch)
        return main(["apply", *files, "--update", "../patch", "--url", url, *more])

    return apply


def contents() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path().iterdir()}


def test_a_diff_of_several_files_is_written(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents()
    assert run(DIFF, "--write", files=("one.py", "two.py", "other.py")) == 0
    assert contents() == {**before, **AFTER}
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "other.py: the update does not speak of it\n")


def test_a_new_file_is_one_that_is_there_and_empty(run: Run) -> None:
    patch = (
        "*** Begin Patch\n*** Update File: one.py\n@@\n-    return 1\n+    return 11\n"
        "*** Add File: three.py\n+x = 3\n*** End Patch\n"
    )
    assert run(patch, "--write", files=("one.py", "three.py")) == 0
    assert contents()["one.py"] == AFTER["one.py"]
    assert contents()["three.py"] == b"x = 3\n"


def test_nothing_is_written_where_it_is_only_shown(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents()
    assert run(DIFF, "--diff") == 0
    assert capsys.readouterr().out.count("--- a/") == 2
    assert run(DIFF, "--json") == 0
    files = json.loads(capsys.readouterr().out)["files"]
    assert [one["result"]["status"] for one in files] == ["applied", "applied"]
    assert run(DIFF, "--check") == 0
    assert capsys.readouterr().out == ""
    assert contents() == before


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
    assert "two.py" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("patch", "files", "more", "code", "said"),
    [
        (DIFF, ("one.py", "other.py"), ("--write",), 2, "apply one.py two.py"),
        (
            "*** Begin Patch\n*** Delete File: one.py\n*** End Patch\n",
            ("one.py", "two.py"),
            ("--write",),
            2,
            "the update is to delete one.py, which is not done here",
        ),
        (DIFF, ("one.py", "one.py"), ("--diff",), 2, "several FILEs are different ones"),
        (DIFF, ("one.py", "two.py"), (), 2, "add --write, --diff, --json or --check"),
        (DIFF, ("one.py", "two.py"), ("--diff", "--resolve", "x"), 2, "--resolve is for a single"),
        (DIFF, ("one.py", "two.py"), ("--diff", "--format", "old_new"), 2, "--format old_new has"),
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
