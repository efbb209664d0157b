"""The service behind the routes: what is loaded, what is served, whether it is ready."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from apply_service.apply.admission import Admission
from apply_service.apply.edit_model import EditModel
from apply_service.apply.edit_request import Constraint, EditRequest, OnDoubt, UseModel
from apply_service.apply.errors import (
    EngineStalledError,
    UnavailableOptionError,
    UnknownModelError,
)
from apply_service.apply.events import NO_READER, EventSink
from apply_service.apply.intake import Intake
from apply_service.apply.judge.second_opinion import SecondOpinion
from apply_service.apply.outcome import Outcome
from apply_service.apply.planning.edit_plan import EditPlan
from apply_service.apply.planning.text_work import TextWork, WorkTerms
from apply_service.apply.run import ApplyPipeline, PipelineLimits
from apply_service.apply.tenant import CacheSharing
from apply_service.apply.writer.writing import Writing
from apply_service.http.compat.chat_run import ChatPipeline
from apply_service.http.compat.settings import CompatSettings
from apply_service.http.schemas import PriorityName
from apply_service.models.manifest import ModelStoreError
from apply_service.models.slot import ModelSlot, ModelState, model_failed, shutting_down
from apply_service.observe.telemetry import Telemetry
from apply_service.prompts.chat import ChatProfile
from apply_service.prompts.profile import Profile, PromptError
from apply_service.shown_text import shown_line
from apply_service.version import system_fingerprint
from batching.async_engine import AsyncEngine
from batching.config import ModelInfo
from batching.errors import EngineError, EngineLostError
from batching.request import Acceptance

if TYPE_CHECKING:  # these bring torch and an HTTP client, for which nobody waits who needs none
    from apply_service.apply.judge.judge import Judge
    from apply_service.apply.judge.judge import Observe as ObserveJudge
    from apply_service.apply.writer.writer import Observe as ObserveWriter
    from apply_service.apply.writer.writer import Writer
    from batching.engine import Engine
    from batching.remote.engine_client import EngineClient

_LOGGER = logging.getLogger(__name__)

T = TypeVar("T")

# Of code; near enough for a queue.
_CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """What holds for edits in batch priority.

    `max_in_flight` lines of one batch are under way at once. `deadline_s` is longer than that of
    other edits, because these go first. A batch has at most `max_lines` and `max_batch_s` seconds.
    """

    max_in_flight: int = 16
    deadline_s: float = 3600.0
    max_lines: int = 50_000
    max_batch_s: float = 14_400.0


DEFAULT_BATCH_LIMITS = BatchLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModel:
    """A model that is in memory, with its engine not yet started."""

    name: str
    engine: Engine | EngineClient
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
    default_constraint: Constraint
    engine: AsyncEngine
    edits: EditModel
    chat: ChatPipeline | None


@dataclass(frozen=True, slots=True)
class _ServedModels:
    """The model of a slot, for edits whose options it has.

    Edits wait for an engine that was lost, as they do for one that is being loaded.
    """

    slot: ModelSlot[ServedModel]

    async def model_for(self, plan: EditPlan) -> EditModel:
        """The loaded model. Raises UnavailableOptionError or what `ModelSlot.wait` raises."""
        served = await self.slot.wait(until=plan.deadline)
        _check_constraint(plan.edit.constraint, served)
        _check_free(plan.edit, served)
        if not served.engine.is_up:
            async with self.slot.waiting(until=plan.deadline):
                await served.engine.wait_until_up()
        return served.edits


def _nobody(_observe: object) -> None:
    """The judge and the writer of a service without them."""


class ApplyService:
    """Takes edits at once, loads its model beside them, and drains at the end.

    `model_name` is what the model is called until it is loaded and says so itself. Up to
    `max_waiting` edits wait for it. A model that is not found ends the service; one that cannot be
    loaded fails only the edits that need it. `make_judge` makes the judge of doubts and
    `make_writer` who writes instead of the model, if there is one; the service closes them. Without
    the writer "auto" means `auto_use_served_model`.
    """

    def __init__(
        self,
        load_model: Callable[[], LoadedModel],
        *,
        model_name: str,
        limits: PipelineLimits,
        default_deadline_s: float,
        max_deadline_s: float | None = None,
        drain_s: float,
        cache_sharing: CacheSharing = "key",
        default_use_model: UseModel = "auto",
        auto_use_model: UseModel = "auto",
        auto_use_served_model: UseModel = "auto",
        default_on_doubt: OnDoubt = "ask",
        stall_s: float = 60.0,
        max_waiting: int = 256,
        batch_limits: BatchLimits = DEFAULT_BATCH_LIMITS,
        compat: CompatSettings | None = None,
        text_work: TextWork | None = None,
        make_judge: Callable[[ObserveJudge], Judge | None] = _nobody,
        make_writer: Callable[[ObserveWriter], Writer | None] = _nobody,
    ) -> None:
        self.telemetry = Telemetry()
        self.model_name = model_name
        self.cache_sharing = cache_sharing
        self.batch_limits = batch_limits
        self._default_deadline_s = default_deadline_s
        self._max_deadline_s = max_deadline_s
        self.default_use_model = default_use_model
        self.auto_use_model = auto_use_model
        self.default_on_doubt: OnDoubt = default_on_doubt
        self.compat = compat or CompatSettings()
        self._text_work = text_work or TextWork()
        self._load_model = load_model
        self._limits = limits
        self._drain_s = drain_s
        self._stall_s = stall_s
        self._is_draining = False
        self._on_model_missing: Callable[[], None] = _nobody_to_tell
        self._is_model_missing = False
        self._model: ModelSlot[ServedModel] = ModelSlot(max_waiting=max_waiting)
        self._judge = make_judge(self.telemetry.count_judge)
        self._writer = make_writer(self.telemetry.count_writer)
        writing = None
        if self._writer is not None:
            writing = Writing(self._writer, self._text_work, otherwise=auto_use_served_model)
        self._pipeline = ApplyPipeline(
            _ServedModels(self._model),
            Intake(max_file_bytes=limits.max_file_bytes, text_work=self._text_work),
            text_work=self._text_work,
            observer=self.telemetry,
            second_opinion=(
                None if self._judge is None else SecondOpinion(self._judge, self._text_work)
            ),
            writing=writing,
        )
        self._loading: asyncio.Task[None] | None = None
        self.telemetry.watch_model(lambda: self._model.state)

    @property
    def _helpers(self) -> list[Judge | Writer]:
        return [one for one in (self._judge, self._writer) if one is not None]

    def deadline_of(self, priority: PriorityName) -> float:
        """Seconds that an edit of a priority gets if it says nothing else."""
        is_batch = priority == "batch"
        return self.batch_limits.deadline_s if is_batch else self._default_deadline_s

    def max_deadline_of(self, priority: PriorityName) -> float:
        """The most seconds that an edit of a priority may ask for."""
        default_s = self.deadline_of(priority)
        is_longer = priority == "interactive" and self._max_deadline_s is not None
        return max(default_s, self._max_deadline_s or 0.0) if is_longer else default_s

    def on_model_missing(self, tell: Callable[[], None]) -> None:
        """Call `tell` on the event loop if there is no such model."""
        self._on_model_missing = tell

    @property
    def is_model_missing(self) -> bool:
        """Whether there is no such model; the log says why."""
        return self._is_model_missing

    def start(self) -> None:
        """Begin to load the model and to start what it has; must run on the event loop."""
        self._text_work.start()
        self._loading = asyncio.create_task(self._load())
        self._loading.add_done_callback(self._note_failure)
        for helper in self._helpers:
            helper.prepare()

    def start_without_model(self) -> None:
        """Start what edits without a model need; others fail with ModelFailedError."""
        self._text_work.start()
        self._model.fail(model_failed)

    async def stop(self) -> None:
        """Take no more requests and let those under way end, for a while."""
        if self._loading is not None:
            await asyncio.wait([self._loading])
        if self._model.state == "ready":
            await self.served.engine.stop(self._drain_s)
        await self._text_work.close()
        for helper in self._helpers:
            await helper.close()

    def begin_drain(self) -> None:
        """Be no longer ready; what runs goes on until `stop`."""
        self._is_draining = True

    async def fail_running(self) -> None:
        """End what still runs, each request with an error that says why."""
        self._model.fail(shutting_down)
        if self._model.state == "ready":
            await self.served.engine.stop()
        await self._text_work.close()

    def check_ready(self) -> None:
        """Raise ShuttingDownError at the end."""
        if self._is_draining:
            raise shutting_down()

    def check_room(self) -> None:
        """Raise TextWorkStuckError if a new edit would be refused, or would not begin for long."""
        self._text_work.check_ready()

    def check_engine(self) -> None:
        """Raise EngineLostError while the engine's process is being started again.

        Raises EngineStalledError while it is silent.
        """
        if not self.is_ready:
            return
        if not self.served.engine.is_up:
            raise EngineLostError("the engine was lost and is being started again")
        silent_s = self.served.engine.silent_s()
        if silent_s:
            raise EngineStalledError(
                f"the engine has shown no sign of life for {silent_s:.0f} s, after"
                f" {self._stall_s:g} s it is given up; ask again later"
            )

    def check_alive(self) -> None:
        """Raise EngineStalledError if the engine has work and does nothing, or has failed."""
        stalled_s = self.served.engine.stalled_s() if self._model.state == "ready" else 0.0
        if stalled_s > self._stall_s:
            raise EngineStalledError(
                f"requests are queued and the engine made no step for {stalled_s:.0f} s, the limit"
                f" is {self._stall_s:g} s; restart the server"
            )

    @property
    def model_state(self) -> ModelState:
        """What has become of the model."""
        return self._model.state

    @property
    def is_ready(self) -> bool:
        """Whether the model is loaded."""
        return self._model.state == "ready"

    @property
    def served(self) -> ServedModel:
        """The loaded model. Raises NotReadyError, ModelFailedError or ShuttingDownError."""
        return self._model.get()

    @property
    def fingerprint(self) -> str:
        """What answers come from: the service, and the model if it is loaded."""
        return self.served.fingerprint if self.is_ready else system_fingerprint(None, None)

    def num_queued_tokens(self) -> int:
        """Tokens that the engine is to compute, and about those whose text is still worked on."""
        num_tokens = self.served.engine.stats().num_queued_tokens if self.is_ready else 0
        return num_tokens + self._text_work.num_characters // _CHARACTERS_PER_TOKEN

    async def wait_for_model(self, *, is_patient: bool = False) -> ServedModel:
        """The loaded model, waited for as long as an edit may take; else as `ModelSlot.wait`.

        `is_patient` waits as long as the model loads.
        """
        until = None if is_patient else time.monotonic() + self._default_deadline_s
        return await self._model.wait(until=until)

    def check_options(
        self,
        *,
        model: str | None,
        constraint: Constraint | None,
        acceptance: Acceptance = "exact",
    ) -> None:
        """Raise UnknownModelError or UnavailableOptionError, or what `check_ready` raises."""
        self.check_ready()
        if acceptance != "exact" and not self._limits.allows_lossy:
            raise UnavailableOptionError(
                f"the acceptance {acceptance!r} lets drafts pass that the model would not have"
                " written, which this server refuses; leave it out, or start the server with"
                " --lossy-acceptance allowed"
            )
        name = self.model_name
        if model is not None and model != name and model not in self.compat.model_aliases:
            raise UnknownModelError(
                f"the model '{shown_line(model)}' is not served; leave `model` out, or send"
                f" {name!r}"
            )
        if self.is_ready:
            _check_constraint(constraint, self.served)

    async def apply(self, edit: EditRequest, events: EventSink = NO_READER) -> Outcome:
        """Run an edit, once the model is there if it needs one.

        Raises what `ApplyPipeline.apply` and `ModelSlot.wait` raise, and UnavailableOptionError.
        """
        return await self._pipeline.apply(edit, events)

    @property
    def max_file_bytes(self) -> int:
        """The most bytes that a file or an update may have."""
        return self._limits.max_file_bytes

    async def read_text(
        self, work: Callable[[], T], *, num_characters: int, deadline_s: float | None = None
    ) -> T:
        """The result of `work`, which reads a text of `num_characters`, from a text worker.

        Raises the errors of `work`, and what `TextWork.run` raises.
        """
        if deadline_s is None:
            deadline_s = self._default_deadline_s
        terms = WorkTerms.of_text(num_characters, deadline_s=deadline_s)
        self._text_work.check_room(terms)
        return await self._text_work.run(terms, work)

    async def _load(self) -> None:
        loaded = await asyncio.to_thread(self._load_model)
        engine = AsyncEngine(loaded.engine)
        engine.start()
        info, profile = engine.model_info, loaded.profile
        fingerprint = system_fingerprint(info.fingerprint, loaded.adapter_sha256)
        self.telemetry.watch_engine(
            engine.stats, name=loaded.name, profile=profile.name, fingerprint=fingerprint
        )
        admission = Admission(engine)
        chat = None
        if isinstance(profile, ChatProfile):
            chat = ChatPipeline(
                engine,
                profile,
                admission=admission,
                max_draft_tokens=self._limits.max_draft_tokens,
                observe=self.telemetry.observe_chat,
            )
        edits = EditModel(
            engine,
            profile,
            admission=admission,
            max_draft_tokens=self._limits.max_draft_tokens,
        )
        self.model_name = loaded.name
        self._model.put(
            ServedModel(
                name=loaded.name,
                created=int(time.time()),
                fingerprint=fingerprint,
                info=info,
                profile_name=profile.name,
                constraints=profile.constraints,
                default_constraint=profile.default_constraint,
                engine=engine,
                edits=edits,
                chat=chat,
            )
        )
        _LOGGER.info("ready: model %s, profile %s", loaded.name, loaded.profile.name)

    def _note_failure(self, loading: asyncio.Task[None]) -> None:
        """Remember why there is no model, foreseen or not; without one at all the server ends."""
        error = None if loading.cancelled() else loading.exception()
        if error is None:
            return
        is_missing = isinstance(error, ModelStoreError | PromptError)
        is_foreseen = is_missing or isinstance(error, EngineError)
        _LOGGER.error(
            "the model cannot be served: %s", error, exc_info=None if is_foreseen else error
        )
        self._is_model_missing = is_missing
        self._model.fail(model_failed)
        if is_missing:
            self._on_model_missing()


def _check_constraint(constraint: Constraint | None, served: ServedModel) -> None:
    if constraint is not None and constraint not in served.constraints:
        raise UnavailableOptionError(
            f"the constraint {constraint!r} is not available with the model {served.name!r}; choose"
            f" one of {', '.join(served.constraints)}"
        )


def _check_free(edit: EditRequest, served: ServedModel) -> None:
    """Raise UnavailableOptionError if lossy drafts are to be bound to valid merges."""
    constraint = edit.constraint or served.default_constraint
    if edit.sampling.acceptance != "exact" and constraint != "none":
        raise UnavailableOptionError(
            f"the acceptance {edit.sampling.acceptance!r} is only for answers that the model writes"
            f" freely, and the constraint is {constraint!r}; leave the acceptance out, or send the"
            " constraint none"
        )


def _nobody_to_tell() -> None:
    """A service without a server around it only logs."""
