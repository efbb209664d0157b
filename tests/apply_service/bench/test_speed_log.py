"""Finished runs in a file: the bench goes on where it was stopped, and loses no file of others."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from apply_service.bench.speed_log import RunRecord, SpeedLog, SpeedLogError, SpeedSettings
from apply_service.bench.speed_run import SpeedRun, WorkerFacts
from batching.draft_losses import DraftLosses
from batching.events import ReferenceStats, RequestStats

SETTINGS = SpeedSettings(
    model="embedded",
    revision="r",
    profile="embedded",
    k=64,
    draft_budget="auto",
    max_tokens=None,
    threads=2,
    processor="p",
)
STATS = RequestStats(
    num_prompt_tokens=7,
    num_cached_tokens=0,
    num_output_tokens=3,
    drafted=4,
    accepted=2,
    forced=0,
    target_passes=2,
    decode_passes=1,
    queue_s=0.0,
    load_s=0.0,
    prefill_s=0.25,
    decode_s=0.5,
    by_reference={"original": ReferenceStats(4, 2)},
    losses=DraftLosses(rejected={"original": 2}, at_end=60),
)
FACTS = WorkerFacts(dtype="float32", versions={"torch": "2"}, max_position=100)


def make_record(case: str = "a", round_number: int = 0) -> RunRecord:
    return RunRecord(
        case=case,
        contender="ours",
        round=round_number,
        run=SpeedRun(token_ids=(1, 2, 3), seconds=0.5, first_token_s=0.25, stats=STATS),
        peak_memory_bytes=1000,
    )


def test_runs_and_facts_are_found_again(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    log = SpeedLog(path, SETTINGS)
    log.add_facts("ours", FACTS)
    log.add(make_record())
    log.close()
    log = SpeedLog(path, SETTINGS)
    assert log.facts == {"ours": FACTS}
    assert log.try_find("a", "ours", 0) == make_record()
    assert log.try_find("a", "ours", 1) is None
    assert log.try_find("b", "ours", 0) is None
    log.add(make_record(round_number=1))
    log.close()
    assert len(path.read_bytes().splitlines()) == 4


def test_half_a_line_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    log = SpeedLog(path, SETTINGS)
    log.add(make_record("a"))
    log.add(make_record("b"))
    log.close()
    path.write_bytes(path.read_bytes()[:-20])
    log = SpeedLog(path, SETTINGS)
    assert log.try_find("a", "ours", 0) is not None
    assert log.try_find("b", "ours", 0) is None
    log.add(make_record("b"))
    log.close()
    log = SpeedLog(path, SETTINGS)
    assert log.try_find("b", "ours", 0) == make_record("b")
    log.close()


def test_without_a_path_runs_are_kept_in_memory() -> None:
    log = SpeedLog(None, SETTINGS)
    log.add(make_record())
    assert log.try_find("a", "ours", 0) == make_record()
    log.close()


def test_other_settings_are_refused_by_name_and_values(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    SpeedLog(path, SETTINGS).close()
    other = msgspec.structs.replace(SETTINGS, threads=8)
    with pytest.raises(SpeedLogError, match="threads 2, and now it is 8; name another file"):
        SpeedLog(path, other)


@pytest.mark.parametrize(
    "content",
    [
        b'{"id": "a case"}\n',
        b"text\nand more",
        b"text without an end",
        msgspec.json.encode(make_record()) + b"\n",
        2 * (msgspec.json.encode(SETTINGS) + b"\n"),
    ],
)
def test_a_file_of_something_else_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(SpeedLogError, match="name another file"):
        SpeedLog(path, SETTINGS)
    assert path.read_bytes() == content


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(SpeedLogError, match="cannot be read and written"):
        SpeedLog(tmp_path / "missing" / "runs.jsonl", SETTINGS)
