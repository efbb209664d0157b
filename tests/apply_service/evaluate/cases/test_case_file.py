"""Case files: what is read, what is ignored, and the line number of what cannot be read."""

from __future__ import annotations

import gzip
from pathlib import Path

import msgspec
import pytest

from apply_service.evaluate.cases.case_file import Case, CaseFileError, read_cases

GOOD = {"id": "a", "path": "a.py", "original": "x\n", "update": "y", "expected": "y\n"}


def line_of(**changes: object) -> bytes:
    return msgspec.json.encode({**GOOD, **changes})


def write_lines(path: Path, *lines: bytes) -> Path:
    path.write_bytes(b"\n".join(lines))
    return path


def test_cases_are_read_in_order_and_unknown_keys_ignored(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "cases.jsonl",
        line_of(id="one", generator_version=3, project={"name": "p"}),
        b"",
        line_of(id="two", instruction="do", style="whole", original="é\r\n…"),
        b"",
    )
    assert list(read_cases(path)) == [
        Case(id="one", path="a.py", original="x\n", update="y", expected="y\n"),
        Case(
            id="two",
            path="a.py",
            original="é\r\n…",
            update="y",
            expected="y\n",
            instruction="do",
            style="whole",
        ),
    ]


@pytest.mark.parametrize(
    "bad",
    [
        b"{",
        b"[]",
        b"null",
        line_of(expected=None),
        line_of(original=3),
        line_of(id=7),
        line_of(style=["whole"]),
        line_of(instruction=1),
        line_of(original="a\0b"),
        line_of(instruction="\0"),
        line_of()[:-1] + b"\0}",
        line_of() + line_of(),
        b'{"id": "\xff"}',
        line_of(expected="X").replace(b"X", b"\\ud800"),
        msgspec.json.encode({key: GOOD[key] for key in GOOD if key != "update"}),
    ],
    ids=[
        "truncated",
        "list",
        "null",
        "null-text",
        "number-text",
        "number-id",
        "list-style",
        "number-instruction",
        "nul-in-text",
        "nul-in-instruction",
        "raw-nul",
        "two-objects",
        "not-utf8",
        "lone-surrogate",
        "missing-key",
    ],
)
def test_a_bad_line_is_reported_with_its_number(tmp_path: Path, bad: bytes) -> None:
    path = write_lines(tmp_path / "cases.jsonl", line_of(), b"", bad, line_of())
    cases = read_cases(path)
    assert next(cases).id == "a"
    with pytest.raises(CaseFileError, match="line 3 is not a case") as caught:
        next(cases)
    assert caught.value.line_number == 3


def test_a_missing_file_is_reported_without_a_line(tmp_path: Path) -> None:
    with pytest.raises(CaseFileError, match="cannot be read") as caught:
        list(read_cases(tmp_path / "none.jsonl"))
    assert caught.value.line_number is None


def test_a_packed_file_is_read_like_one_that_is_not(tmp_path: Path) -> None:
    plain = write_lines(tmp_path / "cases.jsonl", line_of(), b"", line_of())
    packed = tmp_path / "cases.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert list(read_cases(packed)) == list(read_cases(plain))


@pytest.mark.parametrize(
    "content",
    [b"{}\n", gzip.compress((line_of() + b"\n") * 99, mtime=0)[:-9], b"\x1f\x8b\x08rest"],
    ids=["plain", "cut off", "no stream"],
)
def test_a_packed_file_that_is_broken_cannot_be_read(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "cases.jsonl.gz"
    path.write_bytes(content)
    with pytest.raises(CaseFileError, match="cannot be read"):
        list(read_cases(path))
