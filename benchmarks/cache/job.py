"""A replica of the cache bench: its jobs, its answers and its process."""

from __future__ import annotations

from typing import Literal

import msgspec

from apply_service.evaluate.worker_process import WorkerProcess
from batching.config import CachePayload


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a process's engine; `cache_memory` 0 is without lower tiers."""

    model: str
    cache_memory: int
    kv_memory: int
    redis_url: str | None = None
    chunk_tokens: int
    payload: CachePayload = "exact"
    timeout_s: float = 1.0
    threads: int | None = None


class CacheJob(msgspec.Struct, frozen=True, kw_only=True):
    """One edit. Equal salts share cached work; `max_tokens` None writes the whole answer.

    With `flush` the process waits, when the answer is done, until its stores are.
    """

    original: str
    update: str
    path: str
    scope: Literal["file", "auto"] = "file"
    constraint: Literal["none", "merge"] = "none"
    salt: str = ""
    max_tokens: int | None = None
    flush: bool = False


class CacheRun(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one edit, summed over its regions.

    Seconds until the first token came, and until the end; under a constraint the first token often
    needs no computing. `decisions` are those of the tiers, such as "redis:load".
    """

    token_ids: tuple[int, ...]
    prompt_tokens: int
    cached_tokens: int
    first_token_s: float
    load_s: float
    total_s: float
    decisions: tuple[str, ...]
    prompts: tuple[tuple[int, ...], ...]


class CacheProcess(WorkerProcess[CacheJob, CacheRun]):
    """Runs one edit a job."""

    def __init__(self, settings: WorkerSettings) -> None:
        super().__init__(
            "benchmarks.cache.worker",
            [msgspec.json.encode(settings).decode()],
            answer_type=CacheRun,
        )
