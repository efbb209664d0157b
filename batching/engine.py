"""The engine: one thread, one loop, schedule → execute → commit."""

from __future__ import annotations

import logging
import math
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain

from batching.block_pool import BlockPool
from batching.cache.lower_tiers import LowerTiers
from batching.cache.prefix_cache import PrefixCache
from batching.config import CacheConfig, EngineConfig, ModelInfo, SchedulerConfig
from batching.cost_measurement import StepCostFile
from batching.drafters.drafter import Drafter
from batching.drafters.drafting import Drafting
from batching.drafters.registry import make_drafters
from batching.errors import EngineError, EngineLostError, EngineStoppedError, StepFailedError
from batching.events import Cancelled, Event, Failed, Finished
from batching.lanes import Lanes
from batching.live_requests import LiveRequests
from batching.model.runner import ModelRunner
from batching.pending_step import PendingStep
from batching.recipes import TokenText
from batching.request import EngineRequest, Priority
from batching.scheduler import Scheduler
from batching.stats import EngineCounters, EngineGauges, EngineStats
from batching.step_costs import StepCosts, StepSize
from batching.step_plan import StepPlan

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Cancel:
    request_id: str


class _Wake:
    """A load of the prefix cache has ended; whoever waits for it may start."""


class _Stop:
    """Ends the loop; live requests fail with EngineStoppedError."""


@dataclass(frozen=True, slots=True)
class _Fail:
    """Ends the loop; live requests fail with the error."""

    error: EngineLostError


_Command = EngineRequest | _Cancel | _Wake | _Stop | _Fail


_DONE = object()
# Steps with fewer known tokens say little about how fast prompts are computed.
_MIN_PREFILL_TOKENS = 64


@dataclass(frozen=True, slots=True)
class _Flight:
    """A step under way, and when its planning began, had ended, and it was launched."""

    plan: StepPlan
    pending: PendingStep
    began: float
    planned: float
    launched: float


class Engine:
    """Serves requests until stopped; `publish` is called on the engine thread with each event.

    Behind those that belong together comes a call of `flush`.
    Every request that `submit` accepts ends in exactly one Finished, Failed or Cancelled.
    """

    def __init__(
        self,
        config: SchedulerConfig,
        runner: ModelRunner,
        cache: CacheConfig | None = None,
        *,
        costs: StepCosts | None = None,
        keep_costs: Callable[[StepCosts], None] | None = None,
        tokens: TokenText | None = None,
        drafters: Sequence[Drafter] = (),
        close_device: Callable[[], None] | None = None,
    ) -> None:
        """Without `costs` drafts are as long as they may be; `keep_costs` gets them at the end.

        `tokens` is for requests whose constraint or stop texts are about text. `drafters` draft
        beside what requests bring along, the first first. `close_device` is called by `stop`.
        """
        self._config = config
        self._runner = runner
        self._block_pool = BlockPool(runner.num_blocks)
        self._commands: queue.SimpleQueue[_Command] = queue.SimpleQueue()
        self._prefix_cache = PrefixCache(
            self._block_pool,
            block_size=config.block_size,
            model_fingerprint=runner.model_info.fingerprint,
            lower=None if cache is None else self._open_lower_tiers(cache),
            transfer=None if cache is None else runner.kv_transfer,
        )
        self._scheduler = Scheduler(
            config,
            block_pool=self._block_pool,
            prefix_cache=self._prefix_cache,
            costs=costs,
            vocab_size=runner.model_info.vocab_size,
            tokens=tokens,
        )
        self._drafting = Drafting(drafters, vocab_size=runner.model_info.vocab_size)
        self._costs = costs
        self._lanes = Lanes(costs)
        self._flights: deque[_Flight] = deque()
        self._landed = self._committed = -math.inf
        self._keep_costs = keep_costs
        self._close_device = close_device or _nothing
        self._put_off: deque[_Command] = deque()
        self._held_events: list[Event] = []
        self._publish: Callable[[Event], None] = _discard
        self._flush: Callable[[], None] = _nothing
        self._counters = EngineCounters()
        self._live = LiveRequests(config.max_waiting + config.max_running)
        self._beat = time.monotonic()
        self._has_failed = self._is_lost = False
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    @property
    def model_info(self) -> ModelInfo:
        """Limits and identity of the model."""
        return self._runner.model_info

    @property
    def num_live(self) -> int:
        """Requests that are accepted and not ended."""
        return len(self._live.live)

    @property
    def max_live(self) -> int:
        """How many requests may be queued or running."""
        return self._live.limit

    @property
    def is_up(self) -> bool:
        """True: this engine ends with its process."""
        return True

    @property
    def is_lost(self) -> bool:
        """True if a part of the device has gone, and all requests have been told."""
        return self._is_lost

    def start(
        self, publish: Callable[[Event], None], *, flush: Callable[[], None] | None = None
    ) -> None:
        """Start the loop; neither `publish` nor `flush` may block."""
        self._publish = publish
        self._flush = flush or _nothing
        self._thread.start()

    def submit(self, request: EngineRequest) -> None:
        """Accept a request from any thread.

        Raises RequestTooLongError, QueueFullError, DuplicateRequestError or EngineStoppedError, and
        then nothing happened.
        """
        self._live.accept(request, self.model_info)
        self._commands.put(request)

    def cancel(self, request_id: str) -> None:
        """Withdraw a request from any thread; takes effect before the next step."""
        self._commands.put(_Cancel(request_id))

    def lose(self, error: EngineLostError) -> None:
        """Say from any thread that a part of the device has gone: all requests fail with it."""
        self._commands.put(_Fail(error))

    def refuse_new(self) -> None:
        """Take no new requests from now on; those accepted go on."""
        self._live.refuse_new()

    def stop(self) -> None:
        """End the loop after the steps in progress, failing what is unfinished; waits for it."""
        self.refuse_new()
        if self._thread.is_alive():
            self._commands.put(_Stop())
            self._thread.join()
            if self._costs is not None and self._keep_costs is not None:
                self._keep_costs(self._costs)
        self._prefix_cache.close()
        self._close_device()

    def stats(self) -> EngineStats:
        """A snapshot of all figures; each is exact, but they may be a step apart.

        What came in during the step that is under way is waiting too.
        """
        live = self._live.live
        num_live = len(live)
        num_batch = sum(one is Priority.BATCH for one in live.values())
        num_running = self._scheduler.num_running
        num_batch_running = self._scheduler.num_batch_running
        return self._counters.snapshot(
            EngineGauges(
                num_batch_waiting=max(0, num_batch - num_batch_running),
                num_batch_running=num_batch_running,
                num_waiting=max(0, num_live - num_running),
                num_running=num_running,
                num_queued_tokens=self._scheduler.num_queued_tokens,
                num_blocks=self._block_pool.num_blocks,
                num_free_blocks=self._block_pool.num_free_blocks,
                preemptions=self._scheduler.num_preemptions,
                drafters=self._drafting.stats(),
                answers=self._scheduler.answer_stats(),
                tiers=self._prefix_cache.stats(),
            )
        )

    def stalled_s(self) -> float:
        """Seconds since the last sign of life while there is work; 0 without, inf after a failure.

        A load of the prefix cache that all requests wait for shows no sign either.
        """
        if self._has_failed:
            return math.inf
        has_work = self._scheduler.num_waiting + self._scheduler.num_running > 0
        return time.monotonic() - self._beat if has_work else 0.0

    def silent_s(self) -> float:
        """0: this engine cannot be silent where its caller is not."""
        return 0.0

    def wait_for_stores(self, timeout_s: float) -> bool:
        """Wait until the lower tiers hold, or have dropped, what was computed so far.

        False if that takes too long. Not needed for anything but figures and tests.
        """
        return self._prefix_cache.wait_for_stores(timeout_s)

    def step(self) -> None:
        """Plan and launch as many steps as there are lanes, then commit the first of them."""
        num_lanes = self._lanes.choose(self._scheduler.num_running)
        while len(self._flights) < num_lanes and self._launch(num_lanes):
            pass
        if self._flights:
            self._land(self._flights.popleft())
        else:
            self._publish_held()

    def _launch(self, num_lanes: int) -> bool:
        """Give the next step to the device; False if there is none, or it failed."""
        began = time.perf_counter()
        self._drafting.draft(self._scheduler)
        plan = self._scheduler.schedule(time.monotonic(), num_lanes=num_lanes)
        self._publish_all(self._scheduler.take_lost())
        if not plan.scheduled:
            return False
        planned = time.perf_counter()
        try:
            pending = self._runner.launch(plan)
        except EngineLostError:
            raise
        except Exception as error:  # one bad step must not end the service
            self._fail_step(plan, error)
            return False
        self._flights.append(_Flight(plan, pending, began, planned, time.perf_counter()))
        return True

    def _land(self, flight: _Flight) -> None:
        """Wait for a step and commit it. What it takes counts from the end of the one before."""
        plan, pending = flight.plan, flight.pending
        self._work_beside(pending)
        try:
            result = pending.wait()
        except EngineLostError:
            raise
        except Exception as error:  # as above; a device tells of most errors here
            self._fail_step(plan, error)
            return
        landed = time.perf_counter()
        self._counters.count_step(
            plan,
            result,
            schedule_s=flight.planned - flight.began,
            execute_s=landed - max(flight.planned, self._landed),
        )
        self._landed = landed
        if self._costs is not None:
            self._costs.observe(StepSize.of(plan), 1000.0 * pending.seconds)
        if plan.num_known_tokens >= _MIN_PREFILL_TOKENS:
            self._prefix_cache.observe_step(plan.num_known_tokens, pending.seconds)
        if self._drafting.is_active:
            self._drafting.observe(plan, result, pending.features, self._scheduler)
        step_s = time.perf_counter() - max(flight.began, self._committed)
        events = list(self._scheduler.commit(plan, result, now=time.monotonic(), step_s=step_s))
        self._committed = time.perf_counter()
        if pending.leaves_time:
            host_s = flight.launched - flight.began + self._committed - landed
            self._lanes.observe(StepSize.of(plan), 1000.0 * host_s)
        if pending.leaves_time and self._scheduler.has_work and self._commands.empty():
            self._held_events += events  # they are told while the device has the next step
        else:
            self._publish_all(events)

    def _work_beside(self, pending: PendingStep) -> None:
        """What the outcome of a step cannot change, while the device computes it.

        The events of the step before are told, then new requests are taken in and drafts made ahead
        until the step is done.
        """
        self._publish_held()
        pieces = chain(self._take_arrivals(), self._scheduler.prepare())
        while not pending.is_done() and next(pieces, _DONE) is not _DONE:
            self._beat = time.monotonic()

    def _take_arrivals(self) -> Iterator[None]:
        """Accept the requests that came in; commands that could end one of the step are put off."""
        while not self._commands.empty():
            command = self._commands.get()
            if isinstance(command, EngineRequest):
                self._scheduler.add(command, now=time.monotonic())
            else:
                self._put_off.append(command)
            yield

    def _fail_step(self, plan: StepPlan, error: Exception) -> None:
        _LOGGER.error("a step of %d rows failed", plan.num_tokens, exc_info=error)
        failure = StepFailedError(f"the forward pass failed: {error}; send the request again")
        self._publish_all(self._scheduler.fail_step(plan, failure))

    def _run(self) -> None:
        error: EngineError
        try:
            while self._take_commands():
                self._beat = time.monotonic()
                self._publish_all(self._scheduler.expire(time.monotonic()))
                self._publish_all(self._scheduler.settle(time.monotonic()))
                self.step()
            while self._flights:
                self._land(self._flights.popleft())
            error = EngineStoppedError("the engine was stopped before the request was done")
        except EngineLostError as lost:
            self._has_failed = True
            error = lost
        except Exception as failure:  # a bug of ours; without this its victims would wait forever
            _LOGGER.exception("the engine thread failed")
            self._has_failed = True
            error = EngineStoppedError(f"the engine failed: {failure!r}; restart the service")
        self.refuse_new()
        self._publish_held()
        self._publish_all(self._scheduler.fail_all(error))
        unseen = sorted(self._live.live)
        self._publish_all(Failed(request_id, error) for request_id in unseen)
        self._is_lost = isinstance(error, EngineLostError)

    def _take_commands(self) -> bool:
        """Apply what came in since the last step, waiting for something if there is no work."""
        has_work = self._scheduler.has_work
        while self._put_off or not (has_work and self._commands.empty()):
            command = self._put_off.popleft() if self._put_off else self._commands.get()
            self._beat = time.monotonic()
            has_work = True
            if isinstance(command, _Stop):
                return False
            if isinstance(command, _Fail):
                raise command.error
            if isinstance(command, _Cancel):
                self._publish_all(self._scheduler.cancel(command.request_id))
            elif isinstance(command, EngineRequest):
                self._scheduler.add(command, now=time.monotonic())
        return True

    def _publish_all(self, events: Iterable[Event]) -> None:
        """Publish `events`; what is held back goes first."""
        for event in events:
            self._publish_held()
            self._publish_one(event)
        self._flush()

    def _publish_held(self) -> None:
        if not self._held_events:
            return
        held, self._held_events = self._held_events, []
        for event in held:
            self._publish_one(event)
        self._flush()

    def _publish_one(self, event: Event) -> None:
        if isinstance(event, Finished | Failed | Cancelled):
            self._live.end(event.request_id)
            self._drafting.forget(event.request_id)
            self._counters.count_end(event)
        self._publish(event)

    def _open_lower_tiers(self, cache: CacheConfig) -> LowerTiers | None:
        transfer = self._runner.kv_transfer
        if transfer is None:
            return None
        return LowerTiers.open(
            cache,
            namespace=self._runner.kv_namespace,
            payload_bytes=transfer.payload_bytes,
            allocate=transfer.allocate,
            wake=partial(self._commands.put, _Wake()),
        )


def build_engine(config: EngineConfig, *, tokens: TokenText | None = None) -> Engine:
    """Load the model and make an engine that is ready to start; `tokens` as in `Engine`.

    Raises ModelLoadError or CacheConfigError.
    """
    # Each thread that computes has an OpenMP team until it ends, and two teams on the same cores
    # slow each other down: this thread ends, and the engine's own team is left.
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="loader") as loader:
        return loader.submit(_load_engine, config, tokens).result()


def _load_engine(config: EngineConfig, tokens: TokenText | None) -> Engine:
    if config.tensor_parallel == 1:
        return _engine_of(ModelRunner(config), config, tokens)
    # Most servers need neither these modules nor torch.distributed.
    from batching.model.parallel.runner import start_ranks

    lead = start_ranks(config)
    try:
        engine = _engine_of(lead, config, tokens, close_device=lead.crew.close)
    except BaseException:
        lead.crew.close()
        raise
    lead.crew.watch(engine.lose)
    return engine


def _engine_of(
    runner: ModelRunner,
    config: EngineConfig,
    tokens: TokenText | None,
    *,
    close_device: Callable[[], None] | None = None,
) -> Engine:
    drafters = make_drafters(config.drafters, runner.target, tokens)
    runner.attach(drafters)
    runner.warm_up()
    if config.draft_budget == "fixed":
        return Engine(
            config.scheduler,
            runner,
            config.cache,
            tokens=tokens,
            drafters=drafters,
            close_device=close_device,
        )
    kept = None
    if config.step_cost_dir is not None:
        kept = StepCostFile(config.step_cost_dir, **runner.identity)
    costs = kept.load() if kept is not None else None
    if costs is None:
        costs = runner.measure_costs()
        if kept is not None:
            kept.store(costs)

    def keep(costs: StepCosts) -> None:
        if kept is not None:
            kept.store(costs)
        runner.keep_figures()

    return Engine(
        config.scheduler,
        runner,
        config.cache,
        costs=costs,
        keep_costs=keep,
        tokens=tokens,
        drafters=drafters,
        close_device=close_device,
    )


def _discard(_event: Event) -> None:
    """Nobody listens before `start`."""


def _nothing() -> None:
    """Nobody waits for events to be complete."""
