"""A run as a stream: events in order, one end, no matter how its reader behaves."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from pipeline_session import make_edit, make_plan

from apply_service.apply.attempt import Attempt
from apply_service.apply.conclusion import conclude
from apply_service.apply.errors import WithdrawnError
from apply_service.apply.event_stream import EventStream
from apply_service.apply.events import RegionDone, RegionStarted, RegionText, RunEvent
from apply_service.apply.outcome import Outcome

EVENTS: tuple[RunEvent, ...] = (RegionStarted(0, 0, 2), RegionText(0, "a = 2"), RegionDone(0))


def an_outcome() -> Outcome:
    plan = make_plan(make_edit("a = 1\nb = 1\n", "# ...\na = 2\nb = 1\n"))
    return conclude(plan, Attempt(source="model", lines=("a = 2", "b = 1")))


OUTCOME = an_outcome()


@dataclass
class Run:
    """A run whose events are told at once and that ends when it may."""

    sink: EventStream = field(default_factory=EventStream)
    may_begin: asyncio.Event = field(default_factory=asyncio.Event)
    may_end: asyncio.Event = field(default_factory=asyncio.Event)
    error: Exception | None = None
    events: tuple[RunEvent, ...] = EVENTS
    has_ended: bool = False

    def start(self) -> EventStream:
        self.sink.start(self._work())
        return self.sink

    async def _work(self) -> Outcome:
        try:
            await self.may_begin.wait()
            for event in self.events:
                self.sink.put(event)
            await self.may_end.wait()
            if self.error is not None:
                raise self.error
            return OUTCOME
        finally:
            self.has_ended = True


async def read_into(seen: list[RunEvent | Outcome], stream: EventStream) -> None:
    async for item in stream:
        seen.append(item)


async def let_others_run() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_events_come_in_order_and_the_outcome_last() -> None:
    async def scenario() -> None:
        run = Run()
        run.may_begin.set()
        run.may_end.set()
        stream = run.start()
        await stream.wait_until_begun()
        assert [item async for item in stream] == [*EVENTS, OUTCOME]

    asyncio.run(scenario())


def test_a_stream_begins_with_its_first_event() -> None:
    async def scenario() -> None:
        run = Run()
        stream = run.start()
        waiting = asyncio.create_task(stream.wait_until_begun())
        await let_others_run()
        assert not waiting.done()
        run.may_begin.set()
        await waiting
        assert not run.has_ended
        stream.cancel()

    asyncio.run(scenario())


def test_an_outcome_without_events_is_a_beginning_too() -> None:
    async def scenario() -> None:
        run = Run(events=())
        run.may_begin.set()
        run.may_end.set()
        stream = run.start()
        await stream.wait_until_begun()
        assert [item async for item in stream] == [OUTCOME]

    asyncio.run(scenario())


def test_what_ends_a_run_before_its_first_event_is_raised_at_the_beginning() -> None:
    async def scenario() -> None:
        run = Run(events=(), error=ZeroDivisionError("a bug"))
        run.may_begin.set()
        run.may_end.set()
        with pytest.raises(ZeroDivisionError, match="a bug"):
            await run.start().wait_until_begun()

    asyncio.run(scenario())


@pytest.mark.parametrize("is_read_at_once", [True, False])
def test_what_ends_a_run_later_is_raised_after_its_events(*, is_read_at_once: bool) -> None:
    async def scenario() -> None:
        run = Run(error=ZeroDivisionError("a bug"))
        run.may_begin.set()
        run.may_end.set()
        stream = run.start()
        if not is_read_at_once:
            await let_others_run()
            assert run.has_ended
        await stream.wait_until_begun()
        seen: list[RunEvent | Outcome] = []
        with pytest.raises(ZeroDivisionError, match="a bug"):
            await read_into(seen, stream)
        assert seen == list(EVENTS)

    asyncio.run(scenario())


def test_a_slow_reader_does_not_hold_the_run() -> None:
    async def scenario() -> None:
        run = Run()
        run.may_begin.set()
        run.may_end.set()
        stream = run.start()
        items = aiter(stream)
        assert await anext(items) == EVENTS[0]
        await let_others_run()
        assert run.has_ended
        assert [item async for item in items] == [*EVENTS[1:], OUTCOME]

    asyncio.run(scenario())


def test_a_stream_that_nobody_reads_ends_by_itself() -> None:
    async def scenario() -> None:
        run = Run(error=ZeroDivisionError("a bug"))
        run.may_begin.set()
        run.may_end.set()
        await run.start().wait_until_begun()
        await let_others_run()
        assert run.has_ended

    asyncio.run(scenario())


def test_leaving_early_ends_the_run() -> None:
    async def scenario() -> None:
        run = Run()
        run.may_begin.set()
        items = aiter(run.start())
        assert await anext(items) == EVENTS[0]
        await items.aclose()  # type: ignore[attr-defined]
        await let_others_run()
        assert run.has_ended

    asyncio.run(scenario())


def test_who_reads_a_run_that_was_given_up_is_told_so() -> None:
    async def scenario() -> None:
        run = Run()
        run.may_begin.set()
        stream = run.start()
        await stream.wait_until_begun()
        stream.cancel()
        seen: list[RunEvent | Outcome] = []
        with pytest.raises(WithdrawnError, match="cancelled"):
            await read_into(seen, stream)
        assert seen == list(EVENTS)

    asyncio.run(scenario())
