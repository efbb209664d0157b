"""The finished runs of `benchmarks speed`, found by case, contender and round."""

from __future__ import annotations

from pathlib import Path

import msgspec

from apply_service.evaluate.run_log import RunLog
from benchmarks.speed.run import SpeedRun, WorkerFacts


class SpeedSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What runs must have in common to be compared. `max_tokens` None is for whole answers."""

    model: str
    revision: str
    profile: str
    k: int
    draft_budget: str
    max_tokens: int | None
    threads: int
    processor: str


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One timed run, and the process that made it: its peak is that since it was started."""

    case: str
    contender: str
    round: int
    run: SpeedRun
    facts: WorkerFacts
    peak_memory_bytes: int | None = None


class SpeedLog:
    """Finished runs, in memory and, with a path, in a file that grows by a line a run."""

    def __init__(self, path: Path | None, settings: SpeedSettings) -> None:
        """Take in what the file has. Raises RunLogError if it is of other settings."""
        self._log = RunLog(path, identity=msgspec.to_builtins(settings), row_type=RunRecord)
        self._records = {_key_of(record): record for record in self._log.rows}

    def try_find(self, case: str, contender: str, round_number: int) -> RunRecord | None:
        """A finished run, or None."""
        return self._records.get((case, contender, round_number))

    def try_find_facts(self, contender: str) -> WorkerFacts | None:
        """What a contender said of itself in its last run, or None if it has no run."""
        records = [one for one in self._records.values() if one.contender == contender]
        return records[-1].facts if records else None

    def add(self, record: RunRecord) -> None:
        """Keep a finished run."""
        self._records[_key_of(record)] = record
        self._log.add(record)


def _key_of(record: RunRecord) -> tuple[str, str, int]:
    return record.case, record.contender, record.round
