"""The runs of `bench speed`, kept line by line in a file, so that a long bench can go on later."""

from __future__ import annotations

from pathlib import Path
from typing import IO

import msgspec

from apply_service.bench.speed_run import SpeedRun, WorkerFacts
from apply_service.errors import ApplyError


class SpeedLogError(ApplyError):
    """The file of finished runs cannot be used; the message says why."""


class SpeedSettings(msgspec.Struct, frozen=True, kw_only=True, tag="settings"):
    """What runs must have in common to be compared. `max_tokens` None is for whole answers."""

    model: str
    revision: str
    profile: str
    k: int
    draft_budget: str
    max_tokens: int | None
    threads: int
    processor: str


class ContenderRecord(msgspec.Struct, frozen=True, kw_only=True, tag="contender"):
    """A contender was started and said this of itself."""

    contender: str
    facts: WorkerFacts


class RunRecord(msgspec.Struct, frozen=True, kw_only=True, tag="run"):
    """One timed run; the peak is that of the contender's process since it was started."""

    case: str
    contender: str
    round: int
    run: SpeedRun
    peak_memory_bytes: int | None = None


Record = SpeedSettings | ContenderRecord | RunRecord
_DECODER = msgspec.json.Decoder(Record)


class SpeedLog:
    """Finished runs, in memory and, with a path, in a file that grows by a line a run."""

    def __init__(self, path: Path | None, settings: SpeedSettings) -> None:
        """Take in what the file has; half a line at its end is dropped.

        Raises SpeedLogError if it was made with other settings or is no such file.
        """
        self._path = path
        self._file: IO[bytes] | None = None
        self._runs: dict[tuple[str, str, int], RunRecord] = {}
        self._facts: dict[str, WorkerFacts] = {}
        if path is None:
            return
        try:
            content = path.read_bytes() if path.exists() else b""
            num_whole = self._take_lines(content, settings)
            self._file = path.open("ab")
            self._file.truncate(num_whole)
        except OSError as error:
            raise SpeedLogError(
                f"{path} cannot be read and written ({error.strerror}); name another file"
            ) from error
        if not num_whole:
            self._write(settings)

    @property
    def facts(self) -> dict[str, WorkerFacts]:
        """What the contenders said of themselves, by name."""
        return self._facts

    def try_find(self, case: str, contender: str, round_number: int) -> RunRecord | None:
        """A finished run, or None."""
        return self._runs.get((case, contender, round_number))

    def add_facts(self, contender: str, facts: WorkerFacts) -> None:
        """Keep what a contender says of itself."""
        self._facts[contender] = facts
        self._write(ContenderRecord(contender=contender, facts=facts))

    def add(self, record: RunRecord) -> None:
        """Keep a finished run."""
        self._take(record)
        self._write(record)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _take_lines(self, content: bytes, settings: SpeedSettings) -> int:
        """Take in all whole lines; the number of their bytes."""
        whole = content[: content.rfind(b"\n") + 1]
        if content and not whole:
            raise SpeedLogError(f"{self._path} has no whole line; name another file")
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                record = _DECODER.decode(line)
            except msgspec.DecodeError as error:
                raise SpeedLogError(
                    f"{self._path}: line {number} is no run of `bench speed` ({error});"
                    " name another file"
                ) from error
            if (number == 1) != isinstance(record, SpeedSettings):
                raise SpeedLogError(
                    f"{self._path}: line {number} is not where it belongs; name another file"
                )
            if isinstance(record, SpeedSettings):
                self._check_settings(record, settings)
            else:
                self._take(record)
        return len(whole)

    def _check_settings(self, found: SpeedSettings, wanted: SpeedSettings) -> None:
        for name in SpeedSettings.__struct_fields__:
            if getattr(found, name) != getattr(wanted, name):
                raise SpeedLogError(
                    f"{self._path} has runs with {name} {getattr(found, name)!r}, and now it is"
                    f" {getattr(wanted, name)!r}; name another file, or give the same options"
                )

    def _take(self, record: ContenderRecord | RunRecord) -> None:
        if isinstance(record, ContenderRecord):
            self._facts[record.contender] = record.facts
        else:
            self._runs[record.case, record.contender, record.round] = record

    def _write(self, record: Record) -> None:
        if self._file is not None:
            self._file.write(msgspec.json.encode(record) + b"\n")
            self._file.flush()
