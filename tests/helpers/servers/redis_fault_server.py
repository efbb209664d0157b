"""A server rebuilt for each Redis URL on stdin, around one model that stays in memory.

It stands in for `apply-service serve` where starting dozens of processes would take an hour: the
HTTP stack, the guard, its limits and the engine with its cache are the real ones, and all of them
but the model's weights are new each time. An empty line is a server without Redis.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec
from guarded_server import serving_app

from apply_service.apply.planning.text_work import TextWork
from apply_service.apply.run import PipelineLimits
from apply_service.config import Settings
from apply_service.http.app import create_app
from apply_service.http.guard.from_settings import protection_of
from apply_service.http.guard.keys.key_file import KeyFile
from apply_service.http.server.draining import Drain
from apply_service.models.found_model import FoundModel, find_model
from apply_service.models.loading import resolve_device, resolve_dtype
from apply_service.service import ApplyService, LoadedModel
from batching.config import CacheConfig, EngineConfig
from batching.engine import Engine
from batching.model.runner import ModelRunner

SETTINGS = Settings(
    use_model="always",
    threads=1,
    requests_per_minute=100_000,
    tokens_per_minute=100_000_000,
    max_concurrent=100,
)


class FaultServer:
    """The process, for the caller who gives it its URLs; `key` is an API key with limits."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="keys-")
        keys_file = Path(self._folder.name) / "keys.json"
        self.key = KeyFile(keys_file).create("edits", ("apply", "admin")).text
        # Not by its file: processes for text work would import that, and torch with it.
        command = f"import {__name__}; {__name__}.main()"
        self._process = subprocess.Popen(
            [sys.executable, "-c", command, str(keys_file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def restart(self, redis_url: str | None) -> str:
        """End the running server and start one with this Redis; return its address."""
        assert self._process.stdin is not None, "it is a pipe"
        assert self._process.stdout is not None, "it is a pipe"
        self._process.stdin.write((redis_url or "") + "\n")
        self._process.stdin.flush()
        url = self._process.stdout.readline().strip()
        assert url, "the server ended"
        return url

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None, "it is a pipe"
        self._process.stdin.close()
        self._process.wait()
        self._folder.cleanup()


@contextmanager
def _serving(
    settings: Settings, found: FoundModel, runner: ModelRunner, config: EngineConfig
) -> Iterator[str]:
    cache = replace(config.cache, redis_url=settings.redis_url)
    service = ApplyService(
        lambda: LoadedModel(
            name=found.location.name,
            engine=Engine(config.scheduler, runner, cache),
            profile=found.profile,
        ),
        model_name=found.location.name,
        limits=PipelineLimits(max_file_bytes=settings.max_file_bytes, max_draft_tokens=64),
        default_deadline_s=settings.deadline_s,
        drain_s=1.0,
        default_use_model=settings.use_model,
        auto_use_model=settings.auto_use_model,
        text_work=TextWork(num_workers=1),
    )
    protection = protection_of(settings, Drain(), is_private=True)
    app = create_app(service, max_body_bytes=settings.max_body_bytes, protection=protection)
    with serving_app(app) as url:
        yield url


def main() -> None:
    """Serve URL after URL until stdin ends."""
    found = find_model(SETTINGS, report=partial(print, file=sys.stderr))
    device = resolve_device(SETTINGS)
    config = EngineConfig(
        model_path=found.location.path,
        dtype=resolve_dtype(SETTINGS, device),
        device=device,
        num_threads=SETTINGS.threads,
        cache=CacheConfig(memory_bytes=SETTINGS.cache_memory),
    )
    runner = ModelRunner(config)
    runner.warm_up()
    lines = iter(sys.stdin.readline, "")
    line = next(lines, None)
    while line is not None:
        settings = msgspec.structs.replace(
            SETTINGS, redis_url=line.strip() or None, keys_file=sys.argv[1]
        )
        with _serving(settings, found, runner, config) as url:
            print(url, flush=True)
            line = next(lines, None)
