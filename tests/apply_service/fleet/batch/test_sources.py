"""The same edits, however they are written down."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from apply_service.fleet.batch.edit import Edit, SourceError
from apply_service.fleet.batch.sources import read_slice, slices_of

FILES = {
    "greet.py": b"def greet():\n    return 1\n",
    "lib/shout.py": b"def shout():\r\n    return 2\r\n",
    "lib/old.txt": "größer\n".encode("latin-1"),
}
UPDATES = {name: f"# ... existing code ...\nUPDATED = {name!r}\n" for name in FILES}


def edits_of(source: str, root: Path, *, num_rows: int = 2) -> list[Edit]:
    slices = list(slices_of(source, root=root, num_rows=num_rows))
    edits = [edit for one in slices for edit in read_slice(one)]
    assert len(slices) == -(-len(edits) // num_rows)
    return edits


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    for name, content in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return root


def write_lines(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_lines_name_files_or_bring_them(root: Path, tmp_path: Path) -> None:
    rows = [{"path": name, "update": UPDATES[name]} for name in FILES]
    rows.append({"original": "a = 1\n", "update": "a = 2\n", "id": "own", "instruction": "count"})
    edits = edits_of(write_lines(tmp_path / "edits.jsonl", rows), root)

    assert [edit.original for edit in edits] == [*FILES.values(), b"a = 1\n"]
    assert [edit.update for edit in edits] == [*UPDATES.values(), "a = 2\n"]
    assert [edit.id for edit in edits] == [*(f"edits.jsonl:{n}" for n in (1, 2, 3)), "own"]
    assert edits[3].instruction == "count"
    assert [edit.problem for edit in edits] == [None] * 4
    assert len({edit.key for edit in edits}) == 4


def test_parquet_has_the_same_edits_as_lines(root: Path, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="the extra `ray` is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [{"id": name, "path": name, "update": UPDATES[name]} for name in FILES]
    by_lines = edits_of(write_lines(tmp_path / "edits.jsonl", rows), root)
    table = pyarrow.Table.from_pylist([{**row, "irrelevant": 1} for row in rows])
    parquet.write_table(table, tmp_path / "edits.parquet", row_group_size=2)

    assert edits_of(str(tmp_path / "edits.parquet"), root) == by_lines

    parquet.write_table(pyarrow.table({"text": ["a"]}), tmp_path / "other.parquet")
    with pytest.raises(SourceError, match="needs `update`"):
        list(slices_of(str(tmp_path / "other.parquet"), root=root, num_rows=2))


def test_a_folder_has_updates_beside_files(root: Path) -> None:
    for name, update in UPDATES.items():
        (root / f"{name}.update").write_text(update)
    edits = edits_of(str(root), Path("elsewhere"))

    found = {edit.path: (edit.original, edit.update) for edit in edits}
    assert found == {name: (FILES[name], UPDATES[name]) for name in FILES}


def test_a_range_of_commits_brings_files_and_their_diffs(root: Path) -> None:
    def git(*arguments: str) -> str:
        identity = {
            f"GIT_{who}_{what}": "t"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        }
        command = ["git", "-C", str(root), *arguments]
        done = subprocess.run(
            command, check=True, capture_output=True, text=True, env={**os.environ, **identity}
        )
        return done.stdout

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "before")
    (root / "greet.py").write_bytes(b"def greet():\n    return 3\n")
    (root / "lib/shout.py").unlink()
    git("commit", "-qam", "after")
    edits = edits_of("git:HEAD~1..", root)

    assert [edit.path for edit in edits] == ["greet.py"]
    assert edits[0].original == FILES["greet.py"]
    assert edits[0].update == git("diff", "HEAD~1", "HEAD", "--", "greet.py")
    with pytest.raises(SourceError, match=r"no range of commits; write git:BEFORE\.\.AFTER"):
        edits_of("git:HEAD", root)
    with pytest.raises(SourceError, match="git says of"):
        edits_of("git:nowhere..HEAD", root)
    with pytest.raises(SourceError, match="git says of"):
        edits_of("git:--output=x..HEAD", root)


def test_what_is_wrong_with_a_row_is_its_own_problem(root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("text")
    (root / "link").symlink_to(tmp_path / "secret")
    digest = hashlib.sha256(FILES["greet.py"]).hexdigest()
    rows: list[dict[str, Any]] = [
        {"path": "greet.py", "update": "a", "expected_sha256": digest},
        {"path": "greet.py", "update": "a", "expected_sha256": "0" * 64},
        {"path": "../secret", "update": "a"},
        {"path": "link", "update": "a"},
        {"path": "missing.py", "update": "a"},
        {"update": "a"},
        {"path": "greet.py", "updates": "a"},
    ]
    edits = edits_of(write_lines(tmp_path / "edits.jsonl", rows), root)

    words = [None, "expected_sha256 is 000", "outside", "outside", "cannot be read below"]
    words += ["neither", "is no edit"]
    for edit, word in zip(edits, words, strict=True):
        assert (edit.problem is None) == (word is None), edit
        assert word is None or word in (edit.problem or "")


@pytest.mark.timeout(30)
def test_pipes_and_devices_are_not_read(root: Path, tmp_path: Path) -> None:
    os.mkfifo(root / "pipe")
    os.mkfifo(root / "greet.py.update")
    (root / "pipe.update").write_text("a = 1\n")
    for edit in edits_of(str(root), root):
        assert "no regular file" in (edit.problem or ""), edit
    with pytest.raises(SourceError, match="no regular file"):
        edits_of(str(root / "pipe"), root)


@pytest.mark.timeout(30)
def test_a_pipe_is_no_parquet(root: Path) -> None:
    pytest.importorskip("pyarrow", reason="the extra `ray` is not installed")
    os.mkfifo(root / "pipe.parquet")
    with pytest.raises(SourceError, match="no regular file"):
        edits_of(str(root / "pipe.parquet"), root)


def test_a_source_that_cannot_be_read_ends_the_batch(root: Path) -> None:
    with pytest.raises(SourceError, match=r"nowhere.jsonl cannot be read"):
        edits_of("nowhere.jsonl", root)
