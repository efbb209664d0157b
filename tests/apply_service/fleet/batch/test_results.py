"""Parts of a batch: written whole, found again, joined once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from apply_service.fleet.batch.edit import Edit, EditRow, edit_of
from apply_service.fleet.batch.results import EditResult, ResultFolder, part_name


def some_edits(count: int, *, first: int = 0) -> list[Edit]:
    rows = [EditRow(update=f"x = {number}\n") for number in range(first, first + count)]
    return [edit_of(row, b"x = 0\n", place=row.update) for row in rows]


def results_of(edits: list[Edit]) -> list[EditResult]:
    return [EditResult(key=edit.key, id=edit.id, status="applied") for edit in edits]


@pytest.fixture
def folder(tmp_path: Path) -> ResultFolder:
    folder = ResultFolder(tmp_path)
    folder.prepare()
    return folder


def test_a_part_is_named_by_what_its_edits_are() -> None:
    edits = some_edits(3)
    changed = [*edits[:2], edit_of(EditRow(update=edits[2].update), b"x = 9\n", place="")]

    assert part_name(edits) == part_name(some_edits(3))
    assert len({part_name(some) for some in (edits, edits[::-1], edits[:2], changed)}) == 4


def test_all_parts_are_joined_in_order_with_each_key_once(
    folder: ResultFolder, tmp_path: Path
) -> None:
    slices = [some_edits(3), some_edits(3, first=2), some_edits(2, first=9)]
    for edits in (*slices, some_edits(1, first=50)):
        folder.write(part_name(edits), results_of(edits))
        assert folder.has(part_name(edits))
    (tmp_path / "parts" / "killed.tmp").write_text('{"key": "ab')

    parts = [part_name(edits) for edits in slices]
    assert folder.finish(parts) == {"applied": 7}
    lines = (tmp_path / "results.jsonl").read_text().splitlines()
    keys = [json.loads(line)["key"] for line in lines]
    wanted = [edit.key for edits in slices for edit in edits]
    assert keys == list(dict.fromkeys(wanted))
    # What is done stays done; what belongs to no slice is gone.
    assert sorted(path.name for path in (tmp_path / "parts").iterdir()) == sorted(parts)
