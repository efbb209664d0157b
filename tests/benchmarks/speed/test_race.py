"""The race: whose turn it is, what is run again and what is not."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import msgspec
import pytest

from benchmarks.speed.case import SpeedCase
from benchmarks.speed.contenders import SpeedContender
from benchmarks.speed.log import SpeedLog, SpeedSettings
from benchmarks.speed.race import Race
from benchmarks.speed.run import SpeedRun, WorkerFacts

NAMES = ("ours", "second", "third")
SETTINGS = SpeedSettings(
    model="m",
    revision="r",
    profile="p",
    k=64,
    draft_budget="auto",
    max_tokens=None,
    threads=1,
    processor="p",
)


class NotedProcess:
    """Stands for a worker; notes who was asked for what."""

    def __init__(self, name: str, notes: list[str]) -> None:
        self._name = name
        self._notes = notes
        facts = WorkerFacts(dtype="float32", versions={}, max_position=77)
        self.greeting = msgspec.json.encode(facts).decode()
        self.peak_memory_bytes = 5

    def __enter__(self) -> Self:
        self._notes.append(f"{self._name} starts")
        return self

    def __exit__(self, *_error: object) -> None:
        self._notes.append(f"{self._name} ends")

    def run(self, job: tuple[str, str]) -> SpeedRun:
        self._notes.append(f"{self._name} {job[0]} {job[1]}")
        return SpeedRun(token_ids=(1,), seconds=1.0)


def make_case(case_id: str) -> SpeedCase:
    case: Any = SimpleNamespace(id=case_id)
    prompt: Any = None
    return SpeedCase(case, prompt, (), 10)


def race(log: SpeedLog, case_ids: str, *, num_rounds: int = 1) -> list[str]:
    """What the contenders were asked for in one race."""
    notes: list[str] = []
    contenders = [
        SpeedContender(
            name,
            lambda name=name: NotedProcess(name, notes),  # type: ignore[misc]
            lambda case, salt: (case.case.id, salt),
        )
        for name in NAMES
    ]
    with ExitStack() as stack:
        Race(contenders, log, stack, report=lambda _message: None).run(
            [make_case(case_id) for case_id in case_ids], num_rounds=num_rounds
        )
    return notes


@pytest.fixture
def log() -> SpeedLog:
    return SpeedLog(None, SETTINGS)


def test_turns_rotate_and_the_first_run_of_each_is_not_timed(log: SpeedLog) -> None:
    notes = race(log, "abc", num_rounds=2)
    asked = [note.split()[0] for note in notes if note.endswith("round 0")]
    assert asked == [
        *("ours", "second", "third"),
        *("second", "third", "ours"),
        *("third", "ours", "second"),
    ]
    assert next(note.split()[0] for note in notes if note.endswith("round 1")) == "second"
    for name in NAMES:
        own = [note for note in notes if note.startswith(name)]
        assert own[:3] == [f"{name} starts", f"{name} a warm-up", f"{name} a round 0"]
        assert len(own) == 3 + 5 + 1, "one start, six runs and the one before them, one end"


def test_what_is_finished_is_not_run_again(log: SpeedLog) -> None:
    race(log, "ab")
    assert race(log, "ab") == [], "nobody is started for nothing"
    notes = race(log, "abc")
    assert [note for note in notes if "round" in note] == [
        "third c round 0",
        "ours c round 0",
        "second c round 0",
    ]


def test_a_race_goes_on_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    log = SpeedLog(path, SETTINGS)
    race(log, "ab")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]) + lines[-1][:-9])
    log = SpeedLog(path, SETTINGS)
    notes = race(log, "ab")
    assert [note for note in notes if "round" in note] == ["ours b round 0"]


def test_the_longest_context_is_that_of_ours(log: SpeedLog) -> None:
    notes: list[str] = []
    contender = SpeedContender("ours", lambda: NotedProcess("ours", notes), lambda *job: job)  # type: ignore[arg-type, return-value]
    with ExitStack() as stack:
        assert Race([contender], log, stack, report=notes.append).max_position == 77
    assert notes == ["starting ours", "ours starts", "ours ends"]
    race(log, "a")
    with ExitStack() as stack:
        assert Race([contender], log, stack, report=notes.append).max_position == 77
    assert len(notes) == 3, "the log knows it"
