"""Finished runs are found again, and never mixed with those of something else."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from apply_service.evaluate.run_log import RunLog, RunLogError

IDENTITY = {"bench": "any", "seed": 1, "versions": {"torch": "2"}}


class Row(msgspec.Struct, frozen=True):
    name: str
    seconds: float


def open_log(path: Path | None, **changes: object) -> RunLog[Row]:
    return RunLog(path, identity={**IDENTITY, **changes}, row_type=Row)


def test_rows_are_there_again(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    rows = [Row("one", 0.5), Row("two", 1.5)]
    for row in rows:
        open_log(path).add(row)
    assert open_log(path).rows == rows


def test_without_a_path_nothing_is_kept() -> None:
    log = open_log(None)
    log.add(Row("one", 0.5))
    assert log.rows == [Row("one", 0.5)]


@pytest.mark.parametrize("num_lost", [1, 5, 20])
def test_a_line_that_was_cut_off_is_run_again(tmp_path: Path, num_lost: int) -> None:
    path = tmp_path / "runs.jsonl"
    log = open_log(path)
    log.add(Row("one", 0.5))
    log.add(Row("two", 1.5))
    path.write_bytes(path.read_bytes()[:-num_lost])
    log = open_log(path)
    assert log.rows == [Row("one", 0.5)]
    log.add(Row("three", 2.5))
    assert open_log(path).rows == [Row("one", 0.5), Row("three", 2.5)]


def test_runs_of_another_kind_are_refused_and_stay(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    open_log(path).add(Row("one", 0.5))
    before = path.read_bytes()
    with pytest.raises(RunLogError, match="seed is 1 there and 2 now"):
        open_log(path, seed=2)
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", ["no json\n", "no end", '{"a": 1}\n', "[]\n"])
def test_a_file_of_something_else_is_refused_and_stays(tmp_path: Path, content: str) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text(content)
    with pytest.raises(RunLogError, match="name another"):
        open_log(path)
    assert path.read_text() == content


def test_rows_that_are_none_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    open_log(path)
    with path.open("a") as file:
        file.write('{"name": 3}\n')
    with pytest.raises(RunLogError, match="not a file of finished runs"):
        open_log(path)


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(RunLogError, match="can be written"):
        open_log(tmp_path / "nowhere" / "runs.jsonl")
