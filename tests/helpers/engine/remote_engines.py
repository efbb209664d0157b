"""Engines at the other end of a socket: small ones, their requests, and what became of these."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from apply_service.prompts.tokenizer import PromptTokenizer
from batching.config import EngineConfig, SchedulerConfig
from batching.engine import Engine, build_engine
from batching.events import Event, Tokens
from batching.request import EngineRequest, SamplingParams

LIMIT_S = 30.0
CONFIG = SchedulerConfig(max_running=8, max_waiting=56, max_tokens_per_step=128)


def make_engine(model_dir: Path) -> Engine:
    config = EngineConfig(model_path=model_dir, kv_memory_bytes=1 << 20, scheduler=CONFIG)
    return build_engine(config, tokens=PromptTokenizer.from_dir(model_dir))


def make_request(name: str, *, max_tokens: int = 24, **options: Any) -> EngineRequest:
    generator = random.Random(name)
    sampling = SamplingParams(max_tokens=max_tokens, **options.pop("sampling", {}))
    return EngineRequest(
        request_id=name,
        prompt_token_ids=tuple(generator.randrange(3, 259) for _ in range(20)),
        sampling=sampling,
        **options,
    )


def wait_until(is_true: Callable[[], bool], *, limit_s: float = LIMIT_S) -> None:
    deadline = time.monotonic() + limit_s
    while not is_true():
        assert time.monotonic() < deadline, "what was waited for did not happen"
        time.sleep(0.002)


class Ends:
    """The events of requests, each of which has one end."""

    def __init__(self) -> None:
        self.ends: dict[str, Event] = {}
        self.num_tokens: dict[str, int] = {}

    def take(self, event: Event) -> None:
        assert event.request_id not in self.ends, "an event after the last one"
        if isinstance(event, Tokens):
            count = self.num_tokens.get(event.request_id, 0)
            self.num_tokens[event.request_id] = count + len(event.token_ids)
        else:
            self.ends[event.request_id] = event
