"""The race of `benchmarks speed`: whose turn it is, and what has been run already."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

import msgspec

from apply_service.observe.progress import tracked
from benchmarks.speed.case import SpeedCase
from benchmarks.speed.contenders import OURS, SpeedContender, SpeedProcess
from benchmarks.speed.log import RunRecord, SpeedLog
from benchmarks.speed.run import WorkerFacts


class Race:
    """Runs cases by contenders whose processes are started when they are first needed."""

    def __init__(
        self,
        contenders: Sequence[SpeedContender],
        log: SpeedLog,
        stack: ExitStack,
        *,
        report: Callable[[str], None],
    ) -> None:
        """The processes end with `stack`; `report` is told where the race is."""
        self._contenders = list(contenders)
        self._log = log
        self._stack = stack
        self._report = report
        self._processes: dict[str, SpeedProcess] = {}
        self._warm: set[str] = set()

    @property
    def max_position(self) -> int:
        """The longest context that ours takes."""
        facts = self._log.try_find_facts(OURS)
        if facts is None:
            facts = _facts_of(self._process(self._ours))
        assert facts.max_position is not None, "the engine knows its limit"
        return facts.max_position

    def run(self, cases: Sequence[SpeedCase], *, num_rounds: int) -> None:
        """All runs that the log does not have."""
        turns = [
            (round_number, number)
            for round_number in range(num_rounds)
            for number in range(len(cases))
        ]
        for round_number, number in tracked(turns, name=lambda turn: cases[turn[1]].case.id):
            case = cases[number]
            for contender in self._in_turn(number + round_number):
                if self._log.try_find(case.case.id, contender.name, round_number) is None:
                    self._time(case, contender, round_number)

    def rounds_of(
        self, case: SpeedCase, contender: SpeedContender, num_rounds: int
    ) -> list[RunRecord]:
        """The finished runs of a case, one a round."""
        found = [
            self._log.try_find(case.case.id, contender.name, number) for number in range(num_rounds)
        ]
        return [record for record in found if record is not None]

    def acceptance(self, case: SpeedCase) -> float:
        """Which share of its drafts ours accepts, by a run that is not timed."""
        stats = self._process(self._ours).run(self._ours.job_of(case, "acceptance")).stats
        assert stats is not None, "the engine's own runs have figures"
        return stats.accepted / max(1, stats.drafted)

    @property
    def _ours(self) -> SpeedContender:
        return next(contender for contender in self._contenders if contender.name == OURS)

    def _in_turn(self, turn: int) -> list[SpeedContender]:
        """All contenders; which of them begins rotates with `turn`."""
        first = turn % len(self._contenders)
        return self._contenders[first:] + self._contenders[:first]

    def _time(self, case: SpeedCase, contender: SpeedContender, round_number: int) -> None:
        """One timed run; the very first of a process is preceded by one that is not timed."""
        process = self._process(contender)
        if contender.name not in self._warm:
            process.run(contender.job_of(case, "warm-up"))
            self._warm.add(contender.name)
        self._log.add(
            RunRecord(
                case=case.case.id,
                contender=contender.name,
                round=round_number,
                run=process.run(contender.job_of(case, f"round {round_number}")),
                facts=_facts_of(process),
                peak_memory_bytes=process.peak_memory_bytes,
            )
        )

    def _process(self, contender: SpeedContender) -> SpeedProcess:
        """The process of a contender, started now if it is not yet."""
        process = self._processes.get(contender.name)
        if process is None:
            self._report(f"starting {contender.name}")
            process = self._stack.enter_context(contender.start())
            self._processes[contender.name] = process
        return process


def _facts_of(process: SpeedProcess) -> WorkerFacts:
    return msgspec.json.decode(process.greeting, type=WorkerFacts)
