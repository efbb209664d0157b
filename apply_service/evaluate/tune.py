"""`apply-service bench tune`: the settings that are fastest on your own cases and machine.

Tries values of `threads`, `max_tokens_per_step` (a step's chunk of prompts), `draft_budget` and
`max_draft_tokens` (k), and of `dtype` if some are named, one setting at a time. Each value has a
process of its own and takes turns, case by case, with the best settings so far; nothing of a prompt
was computed before. A value is taken if it is faster beyond the noise (a bootstrap over cases, as
strict as the number of trials demands) and no fewer results are trusted; all others stay as they
are. The outcome is a configuration file for `apply-service serve --config`.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from apply_service.apply.edit_request import Constraint
from apply_service.apply.errors import ApplyError
from apply_service.config import LoadedSettings, Settings, setting_fields
from apply_service.evaluate.case_statistics import geometric_mean
from apply_service.evaluate.cases.case_file import Case, read_cases
from apply_service.evaluate.edit_session import GroupTiming, SessionOptions, session_settings
from apply_service.evaluate.edit_worker import EditJob, EditProcess
from apply_service.evaluate.machine import describe_machine, num_cores
from apply_service.evaluate.tune_search import Knob, SettingComparison, Trial, search
from apply_service.evaluate.worker_process import WorkerEndedError
from apply_service.models.loading import resolve_device, resolve_dtype
from apply_service.observe.progress import Progress, tracked
from apply_service.shown_text import say, shown

MIN_JOBS = 5
_STEP_TOKENS = (256, 512, 1024, 2048)
_DRAFT_TOKENS = (16, 32, 64, 128, 256)
_TRUSTED = ("applied", "unchanged")


class TuneError(ApplyError):
    """The search cannot run as asked."""


@dataclass(frozen=True, slots=True)
class _Workload:
    """The jobs that settings are compared by, each so many times."""

    jobs: tuple[EditJob, ...]
    num_rounds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneOptions:
    """Which settings are tried on which cases; `only` names settings, None tries all."""

    cases: Path
    out: Path
    limit: int
    together: int
    rounds: int
    constraint: Constraint | None
    seed: int
    dtypes: tuple[str, ...]
    only: tuple[str, ...] | None
    json: bool
    session: SessionOptions


def run_tune(options: TuneOptions) -> int:
    """Search, print the trials, write the file."""
    _check(options)
    loaded = session_settings(options.session)
    # A Redis would carry prompts from one side to the other.
    start = msgspec.structs.replace(loaded.settings, redis_url=None)
    knobs = _knobs(start, options)
    with _Arena(start) as arena:
        workload = arena.choose(_jobs(options), num_rounds=options.rounds, limit=options.limit)
        best, trials = search(
            start, knobs, lambda mine, other: arena.compare(mine, other, workload)
        )
    device = resolve_device(best)
    report = {
        "bench": "tune",
        **describe_machine(device=device, dtype=resolve_dtype(best, device)),
        "threads": best.threads or num_cores(),
        "model": best.model,
        "jobs": len(workload.jobs),
        "edits_at_once": options.together,
        "rounds": options.rounds,
        "constraint": options.constraint or "the model's default",
        "trials": [msgspec.to_builtins(trial) for trial in trials],
        "settings": {knob.name: getattr(best, knob.name) for knob in knobs},
    }
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    else:
        print(shown(format_trials(trials)))
    _write(options.out, loaded, best, report=report, trials=trials)
    print(f"wrote {options.out}; apply-service serve --config {options.out}", file=sys.stderr)
    return 0


def format_trials(trials: Sequence[Trial]) -> str:
    """A line for each value that was tried."""
    lines = [f"{'setting':<22}{'value':>10}{'against':>10}{'ratio':>8}{'least':>8}  outcome"]
    for trial in trials:
        outcome = "taken" if trial.is_taken else trial.note or "no gain beyond the noise"
        lines.append(
            f"{trial.name:<22}{_shown(trial.value):>10}{_shown(trial.against):>10}"
            f"{trial.ratio:>8.3f}{trial.least:>8.3f}  {outcome}"
        )
    return "\n".join(lines)


class _Arena:
    """The process of the best settings, which goes on as long as they are the best."""

    def __init__(self, start: Settings) -> None:
        self._settings = start
        self._process = EditProcess(start)
        self._num_runs = 0

    def __enter__(self) -> _Arena:
        self._process.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._process.__exit__(*error)

    def choose(self, jobs: Sequence[EditJob], *, num_rounds: int, limit: int) -> _Workload:
        """The first jobs in which all edits ask the model. Raises TuneError if there are few."""
        chosen: list[EditJob] = []
        progress = Progress(sys.stderr, has_clock=False)
        for job in jobs:
            if len(chosen) == limit:
                break
            progress.show_item("choosing edits", len(chosen) + 1, limit)
            timing = self._run(self._process, job)
            if all(edit.target_passes for edit in timing.edits):
                chosen.append(job)
        progress.clear()
        if len(chosen) < MIN_JOBS:
            raise TuneError(
                f"only {len(chosen)} jobs of the case file can be compared, at least {MIN_JOBS} are"
                " needed: edits that fit the model and ask it; give more cases, or a larger --limit"
            )
        return _Workload(tuple(chosen), num_rounds)

    def compare(self, mine: Settings, other: Settings, workload: _Workload) -> SettingComparison:
        """Both sides by turns, the challenger in a new process."""
        changed = [
            f"{name} {_shown(getattr(other, name))}"
            for name in Settings.__struct_fields__
            if getattr(mine, name) != getattr(other, name)
        ]
        print(f"trying {', '.join(changed)}", file=sys.stderr)
        self._hold(mine)
        challenger = EditProcess(other)
        try:
            with challenger:
                return self._compare(challenger, workload)
        except WorkerEndedError as error:
            if not self._process.is_running:
                raise
            say(f"{', '.join(changed)}: {error}")
            return SettingComparison(has_run=False)

    def _hold(self, settings: Settings) -> None:
        """Have the process of these settings, which are the best by now."""
        if settings != self._settings:
            self._process.__exit__(None, None, None)
            self._settings, self._process = settings, EditProcess(settings)
            self._process.__enter__()

    def _compare(self, challenger: EditProcess, workload: _Workload) -> SettingComparison:
        sides = [self._process, challenger]
        for side in sides:
            self._run(side, workload.jobs[0])
        ratios, num_trusted = [], [0, 0]
        places = tracked(range(len(workload.jobs)), name=lambda place: f"job {place + 1}")
        for place, job in zip(places, workload.jobs, strict=True):
            of_job = []
            for turn in range(workload.num_rounds):
                seconds = [0.0, 0.0]
                for at in (0, 1) if (place + turn) % 2 else (1, 0):
                    timing = self._run(sides[at], job)
                    seconds[at] = timing.wall_s
                    num_trusted[at] += sum(edit.status in _TRUSTED for edit in timing.edits)
                of_job.append(seconds[0] / seconds[1])
            ratios.append(geometric_mean(of_job))
        return SettingComparison(ratios=tuple(ratios), is_worse=num_trusted[1] < num_trusted[0])

    def _run(self, process: EditProcess, job: EditJob) -> GroupTiming:
        """One job, with nothing computed before."""
        self._num_runs += 1
        return process.run(msgspec.structs.replace(job, salt=f"run {self._num_runs}"))


def _knobs(start: Settings, options: TuneOptions) -> list[Knob]:
    """What is tried, in this order; the first value of each is the one that is set now."""
    cores = num_cores()
    values: dict[str, tuple[Any, ...]] = {
        "threads": tuple(sorted({1, max(1, cores // 2), cores} - {start.threads or cores})),
        "dtype": tuple(options.dtypes),
        "max_tokens_per_step": _STEP_TOKENS,
        "draft_budget": ("auto", "fixed"),
        "max_draft_tokens": _DRAFT_TOKENS,
    }
    knobs = []
    for name, others in values.items():
        if options.only is not None and name not in options.only:
            continue
        now = getattr(start, name)
        knobs.append(Knob(name, (now, *(value for value in others if value != now))))
    for name in options.only or ():
        if name not in values:
            raise TuneError(
                f"--only has {name!r}; the settings that are tried are {', '.join(values)}"
            )
    return knobs


def _jobs(options: TuneOptions) -> list[EditJob]:
    """All cases that have an answer, in an order that the seed decides, so many at once."""
    cases: list[Case] = [case for case in read_cases(options.cases) if not case.must_refuse]
    random.Random(options.seed).shuffle(cases)
    starts = range(0, len(cases) - options.together + 1, options.together)
    return [
        EditJob(
            cases=tuple(cases[at : at + options.together]), salt="", constraint=options.constraint
        )
        for at in starts
    ]


def _check(options: TuneOptions) -> None:
    for name, least in (("limit", MIN_JOBS), ("together", 1), ("rounds", 1)):
        if getattr(options, name) < least:
            raise TuneError(f"--{name} is {getattr(options, name)}; give a number from {least} on")
    if options.out.exists():
        raise TuneError(
            f"{options.out} exists and is not overwritten; name another file, or remove it"
        )
    if not options.out.parent.is_dir():
        raise TuneError(f"{options.out.parent} is not a folder; make it, or name a file elsewhere")
    formats = msgspec.json.schema(Settings)["$defs"]["Settings"]["properties"]["dtype"]["enum"]
    for name in options.dtypes:
        if name not in formats:
            raise TuneError(f"--dtypes has {name!r}; choose from {', '.join(formats)}")


def _write(
    path: Path,
    loaded: LoadedSettings,
    best: Settings,
    *,
    report: dict[str, Any],
    trials: Sequence[Trial],
) -> None:
    """What was set by flag or file, and what was found; the trials as comments."""
    lines = [
        "# Found by `apply-service bench tune`; for `apply-service serve --config`.",
        f"# {report['jobs']} jobs of {report['edits_at_once']} edits, {report['rounds']} rounds;"
        f" {report['processor']}, {report['cores']} cores, model {report['model']}",
    ]
    tried = {trial.name for trial in trials}
    for field in setting_fields():
        origin, value = loaded.origins[field.name], getattr(loaded.settings, field.name)
        is_changed = field.name in tried and getattr(best, field.name) != value
        if is_changed:
            value = getattr(best, field.name)
        if is_changed and origin.startswith("environment"):
            print(f"{field.variable} is set and goes before the file; unset it", file=sys.stderr)
        if is_changed or origin.startswith(("file", "flag")):
            lines.append(f"{field.name} = {json.dumps(value, ensure_ascii=False)}")
    lines += ["#", *(f"# {line}" for line in format_trials(trials).split("\n"))]
    try:
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise TuneError(f"{path}: {error.strerror}; name a file that can be written") from error


def _shown(value: Any) -> str:
    return "unset" if value is None else str(value)
