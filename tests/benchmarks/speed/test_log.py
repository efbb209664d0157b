"""Finished runs are found again in their file, with all that the engine said of them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from apply_service.evaluate.run_log import RunLogError
from batching.draft_losses import DraftLosses
from batching.events import ReferenceStats, RequestStats
from benchmarks.speed.log import RunRecord, SpeedLog, SpeedSettings
from benchmarks.speed.run import SpeedRun, WorkerFacts

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
        facts=FACTS,
        peak_memory_bytes=1000,
    )


def test_runs_and_facts_are_found_again(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    log = SpeedLog(path, SETTINGS)
    assert log.try_find_facts("ours") is None
    log.add(make_record())
    log = SpeedLog(path, SETTINGS)
    assert log.try_find_facts("ours") == FACTS
    assert log.try_find_facts("theirs") is None
    assert log.try_find("a", "ours", 0) == make_record()
    assert log.try_find("a", "ours", 1) is None
    assert log.try_find("b", "ours", 0) is None
    log.add(make_record(round_number=1))
    assert SpeedLog(path, SETTINGS).try_find("a", "ours", 1) == make_record(round_number=1)


def test_runs_of_other_settings_are_refused_by_name_and_values(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    SpeedLog(path, SETTINGS)
    other = msgspec.structs.replace(SETTINGS, threads=8)
    with pytest.raises(RunLogError, match="threads is 2 there and 8 now; name another file"):
        SpeedLog(path, other)
