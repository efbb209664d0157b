"""Who writes the answers: our engine with and without drafters, and others with prompt lookup."""

from __future__ import annotations

import queue
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

import torch

from batching.config import DrafterConfig, Dtype, EngineConfig, SchedulerConfig, parse_drafters
from batching.engine import Engine, build_engine
from batching.events import Event, Failed, Finished, RequestStats, Tokens
from batching.recipes import TokenText
from batching.request import EngineRequest, SamplingParams
from batching.stats import DrafterStats
from benchmarks.speculators.tasks import Task
from benchmarks.speed.contenders import RivalProcess, SpeedProcess, check_llama, start_llama
from benchmarks.speed.gguf_export import cached_gguf
from benchmarks.speed.run import RivalRequest

OFF, NGRAM = "off", "n-gram"
TRANSFORMERS, LLAMA = "transformers", "llama.cpp"
_LOOKUP_TOKENS = 10
_LLAMA_CONTEXT_TOKENS = 2048
_WAIT_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer, its seconds, and when its tokens came, in seconds from the beginning.

    arrivals: for each event the time and how many tokens it brought; empty for others than ours
    """

    token_ids: tuple[int, ...]
    seconds: float
    arrivals: tuple[tuple[float, int], ...] = ()
    stats: RequestStats | None = None


class Contender(Protocol):
    """Writes one answer at a time."""

    name: str

    def write(self, task: Task, *, temperature: float, seed: int) -> Answer | None:
        """The answer; None if it cannot draw like that."""
        ...

    def close(self) -> None:
        """End its threads and processes."""
        ...


@dataclass(slots=True)
class EngineContender:
    """Our engine, with drafts or without any."""

    name: str
    engine: Engine
    has_drafts: bool
    _events: queue.SimpleQueue[Event] = field(default_factory=queue.SimpleQueue)
    _num_written: int = 0

    def __post_init__(self) -> None:
        self.engine.start(self._events.put)

    def write(self, task: Task, *, temperature: float, seed: int) -> Answer | None:
        """Send a request of its own tenant, so that nothing comes from the prefix cache."""
        self._num_written += 1
        name = f"{task.name}-{self._num_written}"
        request = EngineRequest(
            request_id=name,
            prompt_token_ids=task.prompt_token_ids,
            sampling=SamplingParams(
                max_tokens=task.max_tokens,
                temperature=temperature,
                top_p=0.95 if temperature else 1.0,
                seed=seed,
                stop_token_ids=task.stop_token_ids,
            ),
            proposer=task.drafts if self.has_drafts else None,
            cache_salt=name.encode(),
            prompt_kind="edit" if task.kind == "edit" else "chat",
        )
        began = time.perf_counter()
        self.engine.submit(request)
        token_ids: list[int] = []
        arrivals: list[tuple[float, int]] = []
        while True:
            event = self._events.get(timeout=_WAIT_S)
            now = time.perf_counter() - began
            if isinstance(event, Tokens):
                token_ids += event.token_ids
                arrivals.append((now, len(event.token_ids)))
            elif isinstance(event, Finished):
                return Answer(
                    token_ids=tuple(token_ids),
                    seconds=now,
                    arrivals=tuple(arrivals),
                    stats=event.stats,
                )
            elif isinstance(event, Failed):
                raise event.error

    def drafter_stats(self) -> dict[str, DrafterStats]:
        """Figures of its drafters since it was started."""
        return dict(self.engine.stats().drafters)

    def accepted_by_position(self) -> tuple[int, ...]:
        """Accepted tokens by their place in the draft, since it was started."""
        return self.engine.stats().accepted_by_position

    def judged_by_phase(self) -> Counter[tuple[str, str]]:
        """Draft tokens since it was started, by phase and what became of them."""
        judged: Counter[tuple[str, str]] = Counter()
        for answer in self.engine.stats().answers:
            judged[answer.part.phase, "drafted"] += answer.drafted
            judged[answer.part.phase, "accepted"] += answer.accepted
        return judged

    @property
    def num_drafts(self) -> int:
        """Verified drafts since it was started."""
        return self.engine.stats().drafts

    def close(self) -> None:
        """Stop the engine."""
        self.engine.stop()


@dataclass(slots=True)
class RivalContender:
    """Another engine in a process of its own, greedy, with prompt lookup or without."""

    name: str
    process: SpeedProcess
    num_lookup_tokens: int | None = None

    def write(self, task: Task, *, temperature: float, seed: int) -> Answer | None:
        """One generation."""
        if temperature:
            return None
        run = self.process.run(
            RivalRequest(
                prompt_token_ids=task.prompt_token_ids,
                max_tokens=task.max_tokens,
                stop_token_ids=tuple(sorted(task.stop_token_ids)),
                num_lookup_tokens=self.num_lookup_tokens,
            )
        )
        return Answer(token_ids=run.token_ids, seconds=run.seconds)

    def close(self) -> None:
        """End the process."""
        self.process.__exit__(None, None, None)


def make_contenders(
    model_dir: Path,
    drafters: Sequence[str],
    *,
    dtype: Dtype,
    tokens: TokenText,
    has_transformers: bool,
    llama_python: Path | None = None,
) -> list[Contender]:
    """Off and n-gram, one for each of `drafters` (`KIND[:FOLDER]`, more with commas), and rivals.

    Raises LlamaMissingError, GgufExportError.
    """

    def engine(
        name: str, configs: tuple[DrafterConfig, ...], *, has_drafts: bool = True
    ) -> Contender:
        config = EngineConfig(
            model_path=model_dir,
            dtype=dtype,
            draft_budget="auto",
            scheduler=SchedulerConfig(),
            drafters=configs,
        )
        return EngineContender(name, build_engine(config, tokens=tokens), has_drafts)

    contenders = [engine(OFF, (), has_drafts=False), engine(NGRAM, ())]
    contenders += [engine(f"{NGRAM} + {_short(text)}", parse_drafters(text)) for text in drafters]
    if has_transformers:
        for num_lookup_tokens in (None, _LOOKUP_TOKENS):
            process = RivalProcess(model_dir, num_threads=None).__enter__()
            name = _rival_name(TRANSFORMERS, num_lookup_tokens)
            contenders.append(RivalContender(name, process, num_lookup_tokens))
    if llama_python is not None:
        contenders += _llama_contenders(model_dir, llama_python)
    return contenders


def _llama_contenders(model_dir: Path, python: Path) -> list[Contender]:
    """llama.cpp on the same weights in float32, without drafts and with its prompt lookup."""
    check_llama(python)
    settings = {
        "path": str(cached_gguf(model_dir, "F32", report=partial(print, file=sys.stderr))),
        "dtype": "F32",
        "num_context_tokens": _LLAMA_CONTEXT_TOKENS,
        "num_threads": torch.get_num_threads(),
    }
    return [
        RivalContender(
            _rival_name(LLAMA, count),
            start_llama({**settings, "num_pred_tokens": count or 0}, python).__enter__(),
        )
        for count in (None, _LOOKUP_TOKENS)
    ]


def _rival_name(engine: str, num_lookup_tokens: int | None) -> str:
    return engine if num_lookup_tokens is None else f"{engine} prompt lookup"


def _short(text: str) -> str:
    return " + ".join(config.kind for config in parse_drafters(text))
