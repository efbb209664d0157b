"""Records the edits of one HTTP request while it is served; read once at its end."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from apply_service.apply.outcome import Outcome
from batching.events import RequestStats

# A batch of very many edits is traced no further than this.
MAX_STAGES = 1000

Attributes = dict[str, str | int | float]

# Follows a request through its tasks and threads; set by `recording` alone.
_CURRENT: ContextVar[RequestRecord | None] = ContextVar("request_record", default=None)


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of a request's way; times in nanoseconds since 1970."""

    name: str
    start_ns: int
    end_ns: int
    attributes: Attributes = field(default_factory=dict)


@dataclass(slots=True)
class RequestRecord:
    """The edits of one HTTP request: results by count, tokens, and stages if they are wanted.

    `edit_id` is the first one's: a batch may have more than memory should hold.
    """

    keeps_stages: bool = False
    edit_id: str | None = None
    num_edits: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    problems: Counter[str] = field(default_factory=Counter)
    num_prompt_tokens: int = 0
    num_output_tokens: int = 0
    stages: list[Stage] = field(default_factory=list)

    def note_answer(self, code: str) -> None:
        """Note the problem that is the answer; as a problem of an edit it may be known already."""
        if code not in self.problems:
            self.problems[code] += 1

    def add_outcome(self, outcome: Outcome) -> None:
        """Add an edit that has a verdict."""
        self.edit_id = self.edit_id or outcome.request_id
        self.num_edits += 1
        self.verdicts[outcome.verdict.status] += 1
        self.add_tokens(outcome.stats)

    def add_tokens(self, stats: RequestStats) -> None:
        """Add what the model read and wrote."""
        self.num_prompt_tokens += stats.num_prompt_tokens
        self.num_output_tokens += stats.num_output_tokens

    def add_generation(self, stats: RequestStats) -> None:
        """Add the stages of a request to the engine that has just finished."""
        if not self.keeps_stages or len(self.stages) >= MAX_STAGES:
            return
        spans = {"queue": stats.queue_s, "prefill": stats.prefill_s, "decode": stats.decode_s}
        attributes: dict[str, Attributes] = {
            "queue": {"load_s": stats.load_s},
            "prefill": {
                "prompt_tokens": stats.num_prompt_tokens,
                "cached_tokens": stats.num_cached_tokens,
            },
            "decode": {
                "output_tokens": stats.num_output_tokens,
                "drafted_tokens": stats.drafted,
                "accepted_tokens": stats.accepted,
                "decode_passes": stats.decode_passes,
            },
        }
        start_ns = time.time_ns() - round(sum(spans.values()) * 1e9)
        for name, seconds in spans.items():
            end_ns = start_ns + round(seconds * 1e9)
            self.stages.append(Stage(name, start_ns, end_ns, attributes[name]))
            start_ns = end_ns


def current_record() -> RequestRecord | None:
    """The record of the HTTP request that is being served, None outside of one."""
    return _CURRENT.get()


@contextmanager
def recording(record: RequestRecord) -> Iterator[None]:
    """Set the record that `current_record` returns inside the block."""
    token = _CURRENT.set(record)
    try:
        yield
    finally:
        _CURRENT.reset(token)


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Record the time of a stage, if the current request keeps stages."""
    record = _CURRENT.get()
    if record is None or not record.keeps_stages or len(record.stages) >= MAX_STAGES:
        yield
        return
    start_ns = time.time_ns()
    try:
        yield
    finally:
        record.stages.append(Stage(name, start_ns, time.time_ns()))
