"""Runs the whole pipeline in a process of its own; its argument has the settings.

`python -m apply_service.evaluate.edit_worker SETTINGS` answers each line of stdin, an EditJob as
JSON, with a GroupTiming on stdout, whose first line says that it is ready.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import msgspec

from apply_service.apply.edit_request import Constraint
from apply_service.config import Settings
from apply_service.evaluate.cases.case_file import Case
from apply_service.evaluate.cases.planned_case import edit_of_case
from apply_service.evaluate.edit_session import EditSession, GroupTiming
from apply_service.evaluate.worker_process import WorkerProcess


class EditJob(msgspec.Struct, frozen=True, kw_only=True):
    """Cases to run at the same time; a new salt makes the prefix cache miss."""

    cases: tuple[Case, ...]
    salt: str
    constraint: Constraint | None = None


class EditProcess(WorkerProcess[EditJob, GroupTiming]):
    """An engine with settings of its own, idle between jobs. Ends with the block."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(
            "apply_service.evaluate.edit_worker",
            [msgspec.json.encode(settings).decode()],
            answer_type=GroupTiming,
        )


def run_job(session: EditSession, job: EditJob) -> GroupTiming:
    """All cases of a job at once, each by a model."""
    edits = [
        replace(
            edit_of_case(case, constraint=job.constraint),
            use_model="always",
            cache_salt=f"{job.salt} {case.id}".encode(),
        )
        for case in job.cases
    ]
    return session.run(edits)


def _serve(settings: Settings) -> None:
    # Answers have stdout for themselves; what a library prints goes to stderr.
    answers, sys.stdout = sys.stdout, sys.stderr
    with EditSession.load(settings) as session:
        print("ready", file=answers, flush=True)
        for line in sys.stdin:
            timing = run_job(session, msgspec.json.decode(line, type=EditJob))
            print(msgspec.json.encode(timing).decode(), file=answers, flush=True)


if __name__ == "__main__":
    _serve(msgspec.json.decode(sys.argv[1], type=Settings))
