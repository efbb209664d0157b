"""The service behind the routes: what is loaded, what is served, whether it is ready."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from apply_service.compat.chat_run import ChatPipeline
from apply_service.compat.settings import CompatSettings
from apply_service.edit_request import Constraint, UseModel
from apply_service.errors import (
    EngineStalledError,
    NotReadyError,
    ShuttingDownError,
    UnavailableOptionError,
    UnknownModelError,
)
from apply_service.model_manifest import ModelStoreError
from apply_service.pipeline import ApplyPipeline, PipelineLimits
from apply_service.prompts.chat import ChatProfile
from apply_service.prompts.profile import Profile, PromptError
from apply_service.schemas import PriorityName
from apply_service.telemetry import Telemetry
from apply_service.tenant import CacheSharing
from apply_service.text_work import TextWork
from apply_service.version import system_fingerprint
from batching.async_engine import AsyncEngine
from batching.config import ModelInfo
from batching.engine import Engine
from batching.errors import EngineError

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """What holds for edits in batch priority.

    `max_in_flight` lines of one batch are under way at once. `deadline_s` is longer than that of
    other edits, because these go first.
    """

    max_in_flight: int = 16
    deadline_s: float = 3600.0


DEFAULT_BATCH_LIMITS = BatchLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModel:
    """A model that is in memory, with its engine not yet started."""

    name: str
    engine: Engine
    profile: Profile
    adapter_sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """A model that takes requests, since `created` (seconds since 1970); `chat` if it can chat."""

    name: str
    created: int
    fingerprint: str
    info: ModelInfo
    profile_name: str
    constraints: tuple[Constraint, ...]
    engine: AsyncEngine
    pipeline: ApplyPipeline
    chat: ChatPipeline | None


class ApplyService:
    """Loads its model beside the event loop, serves it, and drains it at the end."""

    def __init__(
        self,
        load_model: Callable[[], LoadedModel],
        *,
        limits: PipelineLimits,
        default_deadline_s: float,
        drain_s: float,
        cache_sharing: CacheSharing = "key",
        default_use_model: UseModel = "always",
        stall_s: float = 60.0,
        batch_limits: BatchLimits = DEFAULT_BATCH_LIMITS,
        compat: CompatSettings | None = None,
        text_work: TextWork | None = None,
    ) -> None:
        self.telemetry = Telemetry()
        self.cache_sharing = cache_sharing
        self.batch_limits = batch_limits
        self.batch_turn = asyncio.Semaphore(1)
        self._default_deadline_s = default_deadline_s
        self.default_use_model = default_use_model
        self.compat = compat or CompatSettings()
        self._text_work = text_work or TextWork()
        self._load_model = load_model
        self._limits = limits
        self._drain_s = drain_s
        self._stall_s = stall_s
        self._is_draining = False
        self._on_load_failed: Callable[[], None] = _nobody_to_tell
        self._load_error: BaseException | None = None
        self._served: ServedModel | None = None
        self._loading: asyncio.Task[None] | None = None

    def deadline_of(self, priority: PriorityName) -> float:
        """Seconds that an edit of a priority gets if it says nothing else."""
        is_batch = priority == "batch"
        return self.batch_limits.deadline_s if is_batch else self._default_deadline_s

    def on_load_failed(self, tell: Callable[[], None]) -> None:
        """Call `tell` on the event loop if the model cannot be loaded; `load_error` says why."""
        self._on_load_failed = tell

    @property
    def load_error(self) -> BaseException | None:
        """Why the model could not be loaded."""
        return self._load_error

    def start(self) -> None:
        """Begin to load the model; must run on the event loop."""
        self._loading = asyncio.create_task(self._load())
        self._loading.add_done_callback(self._note_failure)

    async def stop(self) -> None:
        """Take no more requests and let those under way end, for a while."""
        if self._loading is not None:
            await asyncio.wait([self._loading])
        if self._served is not None:
            await self._served.engine.stop(self._drain_s)
        await self._text_work.close()

    def begin_drain(self) -> None:
        """Be no longer ready; what runs goes on until `stop`."""
        self._is_draining = True

    async def fail_running(self) -> None:
        """End what still runs, each request with an error that says why."""
        if self._served is not None:
            await self._served.engine.stop()
        await self._text_work.close()

    def check_ready(self) -> None:
        """Raise NotReadyError while the model is being loaded, ShuttingDownError at the end."""
        if self._is_draining:
            raise ShuttingDownError("the server is shutting down and takes no new requests")
        _ = self.served

    def check_alive(self) -> None:
        """Raise EngineStalledError if the engine has work and does nothing, or has failed."""
        stalled_s = 0.0 if self._served is None else self._served.engine.stalled_s()
        if stalled_s > self._stall_s:
            raise EngineStalledError(
                f"requests are queued and the engine made no step for {stalled_s:.0f} s, the limit"
                f" is {self._stall_s:g} s; restart the server"
            )

    @property
    def is_ready(self) -> bool:
        """Whether the model is loaded."""
        return self._served is not None

    @property
    def served(self) -> ServedModel:
        """The model that is served. Raises NotReadyError while it is being loaded."""
        if self._served is None:
            raise NotReadyError("the model is still being loaded; ask /health/ready and try again")
        return self._served

    def check_options(self, *, model: str | None, constraint: Constraint | None) -> None:
        """Raise UnknownModelError or UnavailableOptionError, or what `check_ready` raises."""
        self.check_ready()
        name = self.served.name
        if model is not None and model != name and model not in self.compat.model_aliases:
            raise UnknownModelError(
                f"the model {model!r} is not served; leave `model` out, or send {name!r}"
            )
        available = self.served.constraints
        if constraint is not None and constraint not in available:
            raise UnavailableOptionError(
                f"the constraint {constraint!r} is not available with the model {name!r}; choose"
                f" one of {', '.join(available)}"
            )

    async def _load(self) -> None:
        loaded = await asyncio.to_thread(self._load_model)
        engine = AsyncEngine(loaded.engine)
        engine.start()
        info, profile = engine.model_info, loaded.profile
        fingerprint = system_fingerprint(info.fingerprint, loaded.adapter_sha256)
        self.telemetry.watch_engine(
            engine.stats, name=loaded.name, profile=profile.name, fingerprint=fingerprint
        )
        chat = None
        if isinstance(profile, ChatProfile):
            chat = ChatPipeline(
                engine,
                profile,
                max_draft_tokens=self._limits.max_draft_tokens,
                observe=self.telemetry.observe_chat,
            )
        self._served = ServedModel(
            name=loaded.name,
            created=int(time.time()),
            fingerprint=fingerprint,
            info=info,
            profile_name=profile.name,
            constraints=profile.constraints,
            engine=engine,
            pipeline=ApplyPipeline(engine, profile, self._limits, self.telemetry, self._text_work),
            chat=chat,
        )
        _LOGGER.info("ready: model %s, profile %s", loaded.name, loaded.profile.name)

    def _note_failure(self, loading: asyncio.Task[None]) -> None:
        """Remember why loading failed, foreseen or not, and tell the server to end."""
        error = None if loading.cancelled() else loading.exception()
        if error is None:
            return
        is_foreseen = isinstance(error, ModelStoreError | EngineError | PromptError)
        trace = None if is_foreseen else error
        _LOGGER.error("the model cannot be served: %s", error, exc_info=trace)
        self._load_error = error
        self._on_load_failed()


def _nobody_to_tell() -> None:
    """A service without a server around it only logs."""
