"""The service as it asks its model, in a process of its own: from texts to a judged file.

`python -m benchmarks.speed.default_worker MODEL PROFILE THREADS` answers each line of stdin, a
DefaultJob as JSON, with a SpeedRun on stdout, whose first line has its WorkerFacts.
"""

from __future__ import annotations

import sys

import msgspec

from apply_service.evaluate.cases.case_file import Case
from apply_service.evaluate.contenders.pipeline import PipelineContender, load_contender
from apply_service.evaluate.machine import package_versions
from benchmarks.speed.run import SpeedRun, WorkerFacts


class DefaultJob(msgspec.Struct, frozen=True, kw_only=True):
    """An edit. Only edits of the same salt share what was computed for them."""

    case: Case
    salt: str


def run_default(contender: PipelineContender, job: DefaultJob) -> SpeedRun:
    """One edit as the service answers it."""
    answer = contender.answer(job.case, cache_salt=job.salt.encode())
    return SpeedRun(
        token_ids=(),
        seconds=answer.seconds,
        first_token_s=answer.first_text_s,
        status=answer.status,
        is_exact=answer.text == job.case.expected,
    )


def _answer_jobs(model: str, profile: str, threads: str) -> None:
    # Answers have stdout for themselves; what a library prints goes to stderr.
    answers, sys.stdout = sys.stdout, sys.stderr
    contender = load_contender(model=model, profile=profile, threads=threads, has_fallback=True)
    facts = WorkerFacts(dtype=contender.dtype, versions=package_versions())
    print(msgspec.json.encode(facts).decode(), file=answers, flush=True)
    for line in sys.stdin:
        run = run_default(contender, msgspec.json.decode(line, type=DefaultJob))
        print(msgspec.json.encode(run).decode(), file=answers, flush=True)
    contender.close()


if __name__ == "__main__":
    _answer_jobs(sys.argv[1], sys.argv[2], sys.argv[3])
