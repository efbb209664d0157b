"""A pipeline over an oracle's engine for one test, and checks that hold for every run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from oracle_service import OracleService

from apply_service.apply.attempt import Attempt, attempts_of
from apply_service.apply.edit_request import EditRequest
from apply_service.apply.event_stream import EventStream
from apply_service.apply.events import (
    RegionDone,
    RegionRestart,
    RegionStarted,
    RegionText,
    RunEvent,
)
from apply_service.apply.outcome import Outcome
from apply_service.apply.planning.edit_plan import EditPlan, plan_edit
from apply_service.apply.planning.text_work import TextWork
from apply_service.apply.run import ApplyPipeline
from apply_service.edit.regional_update import regional_merge
from apply_service.edit.text.text_file import TextFile
from batching.async_engine import AsyncEngine

MAX_FILE_BYTES = 4_000_000
IDLE_LIMIT_S = 10.0

Items = Sequence[RunEvent | Outcome]


@dataclass(frozen=True, slots=True)
class Session:
    """A pipeline that takes edits, and the engine behind it."""

    pipeline: ApplyPipeline
    engine: AsyncEngine

    async def collect(self, edit: EditRequest) -> list[RunEvent | Outcome]:
        """Collect all events of a run, checked; raise the run's error."""
        items = await self.follow(await self.start(edit))
        check_items(items)
        return items

    async def start(self, edit: EditRequest) -> EventStream:
        """Start a run; it is in the engine or has its outcome on return. Raises the run's error."""
        events = EventStream()
        events.start(self.pipeline.apply(edit, events))
        await events.wait_until_begun()
        return events

    async def follow(self, run: EventStream) -> list[RunEvent | Outcome]:
        return [item async for item in run]

    async def wait_until_idle(self) -> None:
        """Wait until every block is free and no request is left."""
        deadline = time.monotonic() + IDLE_LIMIT_S
        while not self.is_idle:
            assert time.monotonic() < deadline, self.engine.stats()
            await asyncio.sleep(0.005)

    async def wait_until_ended(self, *, num_cancelled: int, num_finished: int) -> None:
        """Wait until the given numbers of requests have ended and nothing is left of them."""
        deadline = time.monotonic() + IDLE_LIMIT_S
        while (stats := self.engine.stats()).cancelled < num_cancelled or not self.is_idle:
            assert time.monotonic() < deadline, stats
            await asyncio.sleep(0.005)
        assert (stats.cancelled, stats.finished) == (num_cancelled, num_finished)

    @property
    def is_idle(self) -> bool:
        stats = self.engine.stats()
        is_empty = stats.num_running == stats.num_waiting == 0
        return is_empty and stats.num_free_blocks == stats.num_blocks


@asynccontextmanager
async def session(
    oracle: OracleService, text_work: TextWork | None = None
) -> AsyncIterator[Session]:
    """Start an engine, and check at the end of the test that it is idle."""
    engine = AsyncEngine(oracle.make_engine())
    engine.start()
    pipeline = ApplyPipeline.on_engine(engine, oracle.profile, oracle.limits, text_work=text_work)
    here = Session(pipeline, engine)
    try:
        yield here
        await here.wait_until_idle()
    finally:
        oracle.runner.gate.set()
        await engine.stop()


def run_edit(oracle: OracleService, edit: EditRequest) -> list[RunEvent | Outcome]:
    """One edit in a session of its own."""

    async def scenario() -> list[RunEvent | Outcome]:
        async with session(oracle) as here:
            return await here.collect(edit)

    return asyncio.run(scenario())


def outcome_of(items: Items) -> Outcome:
    assert isinstance(items[-1], Outcome)
    return items[-1]


def check_items(items: Items) -> None:
    """Check for one outcome, at the end; each region begins, grows, and is done or discarded, once.

    What is done may still be thrown away.
    """
    assert [isinstance(item, Outcome) for item in items] == [False] * (len(items) - 1) + [True]
    stages: dict[int, str] = {}
    for item in items:
        match item:
            case RegionStarted(index, start, end):
                assert index == len(stages), "regions are numbered as they begin"
                assert 0 <= start <= end
                stages[index] = "open"
            case RegionText(index, text):
                assert stages[index] == "open"
                assert text
            case RegionDone(index):
                assert stages[index] == "open"
                stages[index] = "done"
            case RegionRestart(index):
                assert stages[index] in ("open", "done")
                stages[index] = "forgotten"
    assert "open" not in stages.values(), "nothing is left that a client would wait for"


def text_of(items: Items, index: int) -> str:
    """The text of one region as it was shown."""
    return "".join(
        item.text for item in items if isinstance(item, RegionText) and item.index == index
    )


def make_plan(edit: EditRequest) -> EditPlan:
    return plan_edit(edit, max_file_bytes=MAX_FILE_BYTES)


def make_edit(original: str | bytes, update: str, **options: object) -> EditRequest:
    """An edit of a text or of a file's bytes; by default in Python and with the model."""
    if isinstance(original, str):
        file = TextFile.from_text(original)
    else:
        file = TextFile.from_bytes(original)
    options.setdefault("language", "python")
    options.setdefault("constraint", "none")
    options.setdefault("use_model", "always")
    return EditRequest(original=file, update=update, **options)  # type: ignore[arg-type]


def tries_of(plan: EditPlan, oracle: OracleService) -> list[Attempt]:
    return list(attempts_of(plan, max_region_tokens=oracle.profile.max_region_tokens))


def teach(oracle: OracleService, plan: EditPlan, attempt: Attempt) -> None:
    """Have the model write the best merge of each region of an attempt."""
    assert plan.merge is not None
    assert plan.merge.best is not None
    for region in attempt.regions:
        lines = regional_merge(plan.original_lines, plan.merge.path(), region)
        assert lines is not None
        oracle.will_rewrite(region.start, region.end, lines)


def merge_of(plan: EditPlan) -> list[str]:
    assert plan.merge is not None
    assert plan.merge.best is not None
    return list(plan.merge.best)


def functions(names: Sequence[str]) -> str:
    """A Python file with one function of five lines for every name, two blank lines apart."""
    return "\n\n".join(
        f"def {name}(value):\n"
        f"    total_{name} = value + {number}\n"
        f"    for step in range({number}):\n"
        f"        total_{name} += step * {number}\n"
        f"    return total_{name}\n"
        for number, name in enumerate(names)
    )
