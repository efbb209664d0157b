"""`apply-service bench judge` and `writer`: how often they are right about doubts, and their worth.

Each case whose likeliest merge is not certain is put to the judge, or to the writer, as the service
would. A letter is right if it names the expected file, or none of them where no choice is right. So
is a text: none of them is one that is no choice. `judge_accuracy`, or `writer_accuracy`, is the
setting at which their words and the merges' probabilities together surprise least: 0.5 if they are
better without. Shares have their 95 % Wilson interval.
"""

from __future__ import annotations

import asyncio
import math
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, Literal

import msgspec

from apply_service.apply.choices import Choice
from apply_service.apply.conclusion import choices_of
from apply_service.apply.errors import ApplyError, UsageError
from apply_service.apply.judge.from_settings import judge_of
from apply_service.apply.judge.judge import Judge
from apply_service.apply.planning.edit_plan import EditPlan, plan_edit
from apply_service.apply.remote.endpoint import RemoteError
from apply_service.apply.writer.from_settings import writer_of
from apply_service.apply.writer.task import task_of
from apply_service.apply.writer.writer import Writer
from apply_service.apply.writer.writing import spliced
from apply_service.config import Settings, load_settings
from apply_service.edit.place.merge import MergePlan
from apply_service.edit.read.snippet_error import SnippetError
from apply_service.evaluate.case_statistics import wilson_interval
from apply_service.evaluate.cases.case_file import Case, read_cases
from apply_service.evaluate.cases.planned_case import edit_of_case
from apply_service.observe.progress import tracked
from apply_service.shown_text import shown

_ACCURACIES = tuple(hundredths / 100 for hundredths in range(50, 100))
_ANY_CHOICE = "-"
_LEAST_SHARE = 1e-6


class NoDoubtError(ApplyError):
    """No case of a file is in doubt, so there is nothing to ask about."""


RoleName = Literal["judge", "writer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WitnessOptions:
    """Cases, and settings that were named; None leaves one to environment, file or default.

    `role` is who is asked.
    """

    role: RoleName
    cases: Path
    limit: int | None
    config: Path | None
    url: str | None
    model: str | None
    timeout_s: str | None
    json: bool


@dataclass(frozen=True, slots=True)
class Doubt:
    """An edit in doubt with its choices; `truth` is the number of the right one, None if none.

    `right_texts` are all that are right, among the choices or not.
    """

    plan: EditPlan
    choices: tuple[Choice, ...]
    truth: int | None
    right_texts: tuple[str, ...] = ()

    @property
    def merge(self) -> MergePlan:
        assert self.plan.merge is not None, "a doubt is about merges"
        return self.plan.merge


@dataclass(frozen=True, slots=True)
class JudgedDoubt:
    """What a judge named, which is nothing if not `has_word`, and how long that took.

    A writer names the choice that it writes; `wrote_right` says whether its text is right.
    """

    doubt: Doubt
    number: int | None
    has_word: bool
    result: str
    seconds: float | None
    wrote_right: bool = False

    @property
    def is_right(self) -> bool:
        return self.has_word and self.number == self.doubt.truth

    def told(self, accuracy: float) -> MergePlan:
        """The merges after the judge's word."""
        merge = self.doubt.merge
        return merge.told(self.number, accuracy=accuracy) if self.has_word else merge

    def surprise(self, accuracy: float) -> float:
        """The negative log-probability of the truth after the judge's word, in nats."""
        told, truth = self.told(accuracy), self.doubt.truth
        if truth is None:
            share = 1 - sum(map(math.exp, told.weights))
        else:
            share = math.exp(told.weights[told.merges.index(self.doubt.merge.merges[truth])])
        return -math.log(max(share, _LEAST_SHARE))

    def outcome(self, accuracy: float) -> str:
        """`right` or `wrong` if the word makes a merge certain, else `asked`."""
        told = self.told(accuracy)
        if not self.has_word or self.number is None or not told.is_certain:
            return "asked"
        truth = self.doubt.truth
        is_right = truth is not None and told.merges[0] == self.doubt.merge.merges[truth]
        return "right" if is_right else "wrong"


def run_witness(options: WitnessOptions) -> int:
    """Ask about each case in doubt and print the figures. Raises ApplyError or ConfigError."""
    role = options.role
    flags = {f"{role}_{name}": getattr(options, name) for name in ("url", "model", "timeout_s")}
    settings = load_settings(
        flags=flags, environment=os.environ, config_path=options.config
    ).settings
    cases = list(islice(read_cases(options.cases), options.limit))
    doubts = list(find_doubts(cases))
    if not doubts:
        raise NoDoubtError(
            f"none of the {len(cases)} cases of {options.cases} is in doubt; give another file"
        )
    form, judged = asyncio.run(ask_about(doubts, settings, role))
    figures = summarise(judged, getattr(settings, f"{role}_accuracy"), role)
    report = {"role": role, "cases": len(cases), "form": form, **figures}
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    else:
        print(shown(format_report(report)))
    return 0


def find_doubts(cases: Sequence[Case]) -> Iterator[Doubt]:
    """The cases whose likeliest merge is not certain."""
    for case in cases:
        edit = edit_of_case(case, use_model="never")
        try:
            # With a choice an update without a place has a plan too.
            plan = plan_edit(replace(edit, resolve=_ANY_CHOICE), max_file_bytes=sys.maxsize)
        except (SnippetError, ApplyError):
            continue
        merge = plan.merge
        if merge is None or merge.best is None or merge.is_certain:
            continue
        plan = replace(plan, edit=edit)
        choices = choices_of(plan)
        texts = [plan.file.join(lines) for lines in merge.merges[: len(choices)]]
        right = () if case.must_refuse else case.results
        truth = next((number for number, text in enumerate(texts) if text in right), None)
        yield Doubt(plan, choices, truth, tuple(right))


@dataclass
class _Ears:
    """What was observed last."""

    heard: tuple[str, float | None] = ("", None)

    def observe(self, result: str, seconds: float | None) -> None:
        self.heard = (result, seconds)


@dataclass
class _JudgeWitness:
    judge: Judge
    ears: _Ears

    async def say(self, doubt: Doubt) -> JudgedDoubt:
        word = await self.judge.ask(doubt.plan.edit, doubt.choices)
        named = None if word is None else word.number
        return JudgedDoubt(doubt, named, word is not None, *self.ears.heard)


@dataclass
class _WriterWitness:
    writer: Writer
    ears: _Ears

    async def say(self, doubt: Doubt) -> JudgedDoubt:
        task = task_of(doubt.plan)
        written = await self.writer.write(doubt.plan.edit, task)
        if written is None:
            return JudgedDoubt(doubt, None, False, *self.ears.heard)
        lines = spliced(doubt.plan.original_lines, task.attempt.regions, written.texts)
        named = doubt.merge.number_of(lines)
        is_right = doubt.plan.file.join(lines) in doubt.right_texts
        return JudgedDoubt(doubt, named, True, *self.ears.heard, wrote_right=is_right)


async def ask_about(
    doubts: Sequence[Doubt], settings: Settings, role: RoleName
) -> tuple[str, list[JudgedDoubt]]:
    """The form of a witness's answers, and what it says of each doubt, one after another.

    Raises UsageError without one that answers.
    """
    ears = _Ears()
    make = judge_of if role == "judge" else writer_of
    server = make(settings, os.environ, observe=ears.observe, may_rest=False)
    if server is None:
        raise UsageError(f"there is no {role}; name its server with --{role}-url")
    say = (
        _JudgeWitness(server, ears) if isinstance(server, Judge) else _WriterWitness(server, ears)
    ).say
    try:
        try:
            form = await server.meet()
        except RemoteError as error:
            raise UsageError(f"the {role} cannot be asked: {error}") from error
        asked = tracked(doubts, name=lambda doubt: doubt.plan.edit.path or "")
        return form, [await say(doubt) for doubt in asked]
    finally:
        await server.close()


def fitted_accuracy(judged: Sequence[JudgedDoubt]) -> float:
    """The accuracy at which the truth surprises least; 0.5 if no word is better than any."""
    return min(_ACCURACIES, key=lambda accuracy: sum(one.surprise(accuracy) for one in judged))


def summarise(
    judged: Sequence[JudgedDoubt], set_accuracy: float, role: RoleName = "judge"
) -> dict[str, Any]:
    """All figures; `settled` is what would become of the doubts at an accuracy."""
    answered = [one for one in judged if one.has_word]
    num_right = sum(one.is_right for one in answered)
    fitted = fitted_accuracy(judged)
    seconds = sorted(one.seconds for one in judged if one.seconds is not None)
    return {
        "doubts": len(judged),
        "likeliest_right": sum(one.doubt.truth == 0 for one in judged),
        "none_right": sum(one.doubt.truth is None for one in judged),
        "results": dict(sorted(Counter(one.result for one in judged).items())),
        "answered": len(answered),
        "right": num_right,
        "right_interval": wilson_interval(num_right, len(answered)),
        "right_of_none": sum(one.is_right and one.number is None for one in answered),
        "wrote_right": sum(one.wrote_right for one in judged),
        f"{role}_accuracy": fitted,
        "surprise_without": _mean([one.surprise(0.5) for one in judged]),
        "surprise_with": _mean([one.surprise(fitted) for one in judged]),
        "settled": [
            {f"{role}_accuracy": accuracy, **Counter(one.outcome(accuracy) for one in judged)}
            for accuracy in sorted({fitted, set_accuracy})
        ],
        "seconds_median": median(seconds) if seconds else None,
        "seconds_p90": seconds[int(0.9 * (len(seconds) - 1))] if seconds else None,
    }


def format_report(report: dict[str, Any]) -> str:
    """The figures as lines of text."""
    low, high = report["right_interval"]
    role = report["role"]
    doubts, answered = report["doubts"], report["answered"]
    results = ", ".join(f"{name} {number}" for name, number in report["results"].items())
    lines = [
        f"{doubts} of {report['cases']} cases are in doubt; in {report['likeliest_right']} the"
        f" likeliest merge is right, in {report['none_right']} no choice is",
        f"the {role} answers in the form {report['form']}: {results}",
        f"an answer came for {answered}, right for {report['right']}"
        f" ({100 * low:.0f}-{100 * high:.0f} %), of these none of them {report['right_of_none']}",
        f"{role}_accuracy = {report[f'{role}_accuracy']:.2f} surprises least:"
        f" {report['surprise_with']:.3f} nats a doubt, without the {role}"
        f" {report['surprise_without']:.3f}",
    ]
    for settled in report["settled"]:
        lines.append(
            f"at {settled[f'{role}_accuracy']:.2f}: applied and right {settled.get('right', 0)},"
            f" applied and wrong {settled.get('wrong', 0)}, still asked {settled.get('asked', 0)}"
        )
    if role == "writer":
        lines.append(f"the text itself is right for {report['wrote_right']}")
    if report["seconds_median"] is not None:
        lines.append(
            f"seconds a doubt: median {report['seconds_median']:.2f}, p90"
            f" {report['seconds_p90']:.2f}"
        )
    return "\n".join(lines)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
