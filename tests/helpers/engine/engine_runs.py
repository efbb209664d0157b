"""Runs requests through a real engine from a test, without asyncio."""

from __future__ import annotations

import os
import queue
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from apply_service.config import load_settings
from batching.config import EngineConfig, RowGroupingMode
from batching.engine import Engine, build_engine
from batching.events import Cancelled, Event, Failed, Finished, TokenLogprob, Tokens
from batching.recipes import TokenText
from batching.request import EngineRequest
from lookup.proposer import EMPTY_DRAFT, Draft

WAIT_S = 60.0


def forced_rows() -> RowGroupingMode:
    """The row grouping that the environment forces, as it does on a server."""
    return load_settings(flags={}, environment=os.environ).settings.row_grouping


@dataclass
class Outcome:
    """All events of one request."""

    token_ids: list[int] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    last: Finished | Failed | Cancelled | None = None

    @property
    def finished(self) -> Finished:
        """The last event, which must be Finished."""
        assert isinstance(self.last, Finished), self.last
        return self.last


class RunningEngine:
    """A started engine and the events that it published."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.outcomes: dict[str, Outcome] = {}
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        engine.start(self._events.put)

    def submit(self, request: EngineRequest) -> None:
        """Submit without waiting."""
        self.outcomes[request.request_id] = Outcome()
        self.engine.submit(request)

    def take_event(self) -> Event:
        """Wait for the next event and record it; a second last event is an error."""
        event = self._events.get(timeout=WAIT_S)
        outcome = self.outcomes[event.request_id]
        assert outcome.last is None, f"an event after the last one: {event}"
        if isinstance(event, Tokens):
            outcome.token_ids += event.token_ids
            outcome.logprobs += event.logprobs
        else:
            outcome.last = event
        return event

    def wait_all(self) -> dict[str, Outcome]:
        """Wait until every submitted request has ended."""
        while any(outcome.last is None for outcome in self.outcomes.values()):
            self.take_event()
        return self.outcomes

    def run(self, requests: Sequence[EngineRequest]) -> list[Outcome]:
        """Submit all requests and wait; return outcomes in the order of the requests."""
        for request in requests:
            self.submit(request)
        self.wait_all()
        return [self.outcomes.pop(request.request_id) for request in requests]


@contextmanager
def running_engine(
    config: EngineConfig, *, tokens: TokenText | None = None
) -> Iterator[RunningEngine]:
    """Start an engine, and stop it at the end."""
    if config.row_grouping == "auto":
        config = replace(config, row_grouping=forced_rows())
    engine = build_engine(config, tokens=tokens)
    running = RunningEngine(engine)
    try:
        yield running
    finally:
        engine.stop()


class ScriptedProposer:
    """Drafts the script's tokens at the current place, right or wrong."""

    def __init__(self, script: Sequence[int]) -> None:
        self._script = tuple(script)
        self._num_committed = 0

    def build(self) -> None:
        """Do nothing: there is no index."""

    def propose(self, max_tokens: int) -> Draft:
        """The next piece of the script."""
        start = self._num_committed
        token_ids = self._script[start : start + max_tokens]
        return Draft(token_ids, "script", 0) if token_ids else EMPTY_DRAFT

    def commit(self, token_ids: Sequence[int]) -> None:
        """Move on by the number of tokens written."""
        self._num_committed += len(token_ids)
