"""Blind cases come back from what is stored of them."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from training import blind
from training.blind import (
    FOLDER,
    PACKAGES,
    BlindCase,
    BlindCaseError,
    Piece,
    Source,
    pack_result,
    read_blind_cases,
    read_source,
    unpack_result,
    whole_case,
)
from training.releases import read_packages

INDENTED = ["", "a", "    a", "        a", "\ta", "b", "  }", "}"]
LINES = st.lists(st.sampled_from(INDENTED), max_size=8)


@given(LINES, LINES, LINES)
def test_a_result_comes_back(result: list[str], original: list[str], update: list[str]) -> None:
    assert unpack_result(pack_result(result, original, update), original, update) == result


def test_a_wrap_is_lines_of_both_texts() -> None:
    original = ["def f():", "    a()", "", "    b()"]
    update = ["def f():", "    with lock:", "        # ... existing code ..."]
    result = ["def f():", "    with lock:", "        a()", "", "        b()"]
    assert pack_result(result, original, update) == (
        Piece("update", 0, 2),
        Piece("original", 1, 4, 0, "    "),
    )


def test_readings_of_a_question_are_results_that_are_to_be_refused() -> None:
    case = BlindCase(
        id="x",
        kind="ask",
        treat="ask",
        path="a.py",
        instruction="Drop one",
        update="b\n",
        results=((Piece("original", 1, 2),), (Piece("update", 0, 1),)),
    )
    whole = whole_case(case, "a\nc\n")
    assert (whole.expected, whole.also, whole.must_refuse) == ("c\n", ("b\n",), True)


def test_a_file_with_another_hash_is_not_taken(tmp_path: Path) -> None:
    content = b"text\n"
    archive = tmp_path / "x-1.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        member = tarfile.TarInfo("x-1/a.py")
        member.size = len(content)
        packed.addfile(member, io.BytesIO(content))
    source = Source(
        registry="sdist",
        package="x",
        version="1",
        path="a.py",
        sha256=hashlib.sha256(content).hexdigest(),
    )
    archives = {("x", "1"): archive}
    assert read_source(source, archives) == "text\n"
    with pytest.raises(BlindCaseError, match=r"a\.py of x-1\.tar\.gz is not the file"):
        read_source(replace(source, sha256="0"), archives)
    with pytest.raises(BlindCaseError, match=r"x-1\.tar\.gz has no file b\.py"):
        read_source(replace(source, path="b.py"), archives)


def test_a_folder_without_cases_is_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"sources\.json cannot be read: No such file"):
        blind.main(["pack", str(tmp_path), "part"])


def test_a_writer_s_folder_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blind, "FOLDER", tmp_path)
    written = {
        "id": "w-0",
        "kind": "body",
        "file": "own.py",
        "instruction": "Count from 1",
        "update": "a = 1\n",
        "original": "a = 0\nb = 2\n",
        "results": ["a = 1\nb = 2\n"],
        "treat": "merge",
        "reason": "",
    }
    (tmp_path / "sources.json").write_text("{}")
    (tmp_path / "cases.jsonl").write_text(json.dumps(written) + "\n")
    blind.main(["pack", str(tmp_path), "part"])
    (case,) = read_blind_cases(tmp_path / "part.jsonl.gz")
    assert case.original == written["original"]
    assert whole_case(case, written["original"]).expected == "a = 1\nb = 2\n"


def test_what_is_reported_on_is_of_packages_used_nowhere_else() -> None:
    packages = {package.name for package in read_packages(PACKAGES, min_versions=1)}
    fitted = {package.name for package in read_packages(PACKAGES.with_name("packages.toml"))}
    assert not packages & fitted
    of_commits = read_packages(PACKAGES.with_name("report_packages.toml"))
    assert not {package.name for package in of_commits} & (packages | fitted)
    parts: dict[str, set[str]] = {"report": set(), "other": set()}
    ids: list[str] = []
    for path in FOLDER.glob("*.jsonl.gz"):
        cases = read_blind_cases(path)
        ids += [case.id for case in cases]
        part = parts["report" if path.name.startswith("report") else "other"]
        part |= {case.source.package for case in cases if case.source}
        assert all((case.source is None) == (case.original is not None) for case in cases)
    assert ids
    assert len(set(ids)) == len(ids)
    assert parts["report"] | parts["other"] == packages
    assert not parts["report"] & parts["other"]
