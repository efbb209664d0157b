"""Hidden splits: a seed and files give tasks, the same ones each time."""

import gzip
import hashlib
import io
import tarfile

import pytest
from lazy_edit_bench.corpus import load_split
from lazy_edit_bench.generator import generate
from lazy_edit_bench.readers import apply_strictly
from lazy_edit_bench.sources import FetchedEdit, SourceFile, folder_files, read_fetched
from lazy_edit_bench.task import BenchError


@pytest.fixture(scope="module")
def files():
    seen = {}
    for task in load_split("small"):
        if task.language in ("python", "go", "java", "typescript") and "\r" not in task.original:
            seen.setdefault(task.original, SourceFile(task.path, task.original, "test"))
    return list(seen.values())[:25]


def test_a_seed_repeats_and_another_one_does_not(files):
    one = generate(files, seed="a", count=25)
    assert one == generate(files, seed="a", count=25)
    assert one != generate(files, seed="b", count=25)


def test_generated_tasks_are_confirmed(files):
    tasks = generate(files, seed="c", count=30)
    assert len({task.kind for task in tasks}) >= 6
    for task in tasks:
        if task.trap in ("", "unended") and task.treat == "apply":
            assert apply_strictly(task.dialect, task.original, task.update) == task.results[0]


def test_versions_give_edits():
    old = "\n".join(f"value_{n} = {n}" for n in range(60)) + "\n"
    new = old.replace("value_7 = 7", "value_7 = 70").replace("value_30 = 30\n", "")
    file = SourceFile("a.py", old, "p@1", new)
    tasks = generate([file], seed="d", count=60)
    assert any(task.made_by == "version" for task in tasks)


def test_files_of_a_folder(tmp_path):
    (tmp_path / "a.py").write_text("x = 1\n" * 40, encoding="utf-8")
    (tmp_path / "short.py").write_text("x = 1\n", encoding="utf-8")
    (tmp_path / "b.bin").write_bytes(b"\0" * 400)
    assert [file.path for file in folder_files(tmp_path)] == ["a.py"]


def test_a_fetched_edit_is_made_whole():
    stored = FetchedEdit(
        id="x",
        path="a.py",
        package="p",
        version="1",
        file="a.py",
        sha256="",
        pieces=[[["original", 0, 1], ["update", 1, 2, 0, "  "], "last"]],
        update="# ...\nnew\n",
    )
    assert stored.whole("one\ntwo\n").results == ("one\n  new\nlast\n",)


def test_a_file_with_another_hash_is_an_error(tmp_path, monkeypatch):
    content = b"one\n"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        member = tarfile.TarInfo("package/a.py")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    (tmp_path / "p-1.tgz").write_bytes(gzip.compress(packed.getvalue()))
    plain = {"id": "x", "path": "a.py", "package": "p", "version": "1", "file": "a.py"}
    plain |= {"pieces": [["last"]], "update": "u\n", "sha256": hashlib.sha256(content).hexdigest()}
    monkeypatch.setattr("lazy_edit_bench.sources.read_jsonl", lambda _: [plain])
    assert read_fetched(tmp_path)[0].original == "one\n"
    plain["sha256"] = "0" * 64
    with pytest.raises(BenchError, match="is not the file"):
        read_fetched(tmp_path)
