"""The scheduler driven without a model: whatever happens, each request gets its own answer once."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import settings
from oracles.engine.erratic_costs import ErraticCosts
from oracles.engine.target_runner import NoisyProposer, make_target
from scheduler_run import BLOCK_SIZE, SchedulerMachine, SchedulerRun, make_prompt

from batching.cache.host_tier import HostTier
from batching.cache.prefix_cache import PrefixCache
from batching.cache.prefix_load import PrefixLoad
from batching.errors import DeadlineExceededError, EngineStoppedError
from batching.events import Cancelled, Failed, Finished
from batching.request import Priority, SamplingParams
from batching.step_costs import StepCosts

TestScheduler = SchedulerMachine.TestCase
TestScheduler.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)


@pytest.mark.parametrize("seed", range(30))
def test_a_long_mixed_load_ends_well(seed: int) -> None:
    generator = random.Random(seed)
    run = SchedulerRun(
        num_blocks=16, max_tokens_per_step=12, max_running=6, max_draft_tokens=8, ageing_s=2.0
    )
    for i in range(60):
        num_shared = generator.choice([0, 4, 9, 16])
        run.submit(
            f"r{i}",
            make_prompt(0, num_shared) + make_prompt(i + 1, generator.randint(1, 20)),
            generator.randint(1, 24),
            error_rate=generator.choice([0.0, 0.3, 1.0]),
            priority=generator.choice(list(Priority)),
            deadline=run.now + generator.uniform(0.5, 4.0) if generator.random() < 0.3 else None,
            cache_salt=generator.choice([b"", b"tenant"]),
        )
        if generator.random() < 0.2:
            run.record(run.scheduler.cancel(generator.choice(run.live)))
        for _ in range(generator.randint(0, 6)):
            run.step()
            run.now += 0.1
    run.run()
    assert run.scheduler.num_preemptions > 5
    kinds = {type(event) for event in run.last_events.values()}
    assert kinds == {Finished, Failed, Cancelled}


@pytest.mark.parametrize("error_rate", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("max_tokens_per_step", [8, 33, 512])
@pytest.mark.parametrize("costs", [None, ErraticCosts(1), ErraticCosts(2)])
def test_the_answer_does_not_depend_on_drafts_or_budget(
    error_rate: float, max_tokens_per_step: int, costs: StepCosts | None
) -> None:
    run = SchedulerRun(num_blocks=200, max_tokens_per_step=max_tokens_per_step, costs=costs)
    for i in range(8):
        run.submit(f"r{i}", make_prompt(i, 5 + 7 * i), 30 - i, error_rate=error_rate)
    run.run()
    assert all(isinstance(event, Finished) for event in run.last_events.values())


def test_a_request_waits_for_its_load_and_says_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    run = SchedulerRun()
    load = PrefixLoad(
        HostTier(value_bytes=1, max_bytes=1, allocate=memoryview), first_chunk=0, names=()
    )
    monkeypatch.setattr(PrefixCache, "begin_load", lambda *_: load)
    run.submit("waits", make_prompt(1, 9), 3)
    run.now += 0.5
    assert not run.schedule().scheduled
    run.now += 2.0
    assert not run.schedule().scheduled
    load.finish()
    run.now += 1.0
    run.run()
    stats = run.last_events["waits"].stats
    assert (stats.queue_s, stats.load_s) == (3.5, 3.0)


def test_right_drafts_save_steps() -> None:
    passes = {}
    for error_rate in (0.0, 0.5, 1.0):
        run = SchedulerRun(max_tokens_per_step=128)
        run.submit("r", make_prompt(1, 10), 60, error_rate=error_rate)
        run.run()
        stats = run.last_events["r"].stats
        passes[error_rate] = stats.decode_passes
        assert stats.accepted + stats.decode_passes == 60
    assert passes[0.0] == 1, "59 drafts and the bonus token come with the prompt"
    assert passes[0.0] < passes[0.5] < passes[1.0] == 60


def test_without_a_proposer_or_drafts_nothing_is_drafted() -> None:
    run = SchedulerRun()
    run.submit("no proposer", make_prompt(1, 9), 12, proposer=None)
    run.submit("no drafts", make_prompt(2, 9), 12, max_draft_tokens=0)
    run.run()
    for event in run.last_events.values():
        assert event.stats.drafted == 0
        assert event.stats.decode_passes == 12


def test_a_long_prompt_is_computed_in_pieces_beside_running_requests() -> None:
    run = SchedulerRun(max_tokens_per_step=16)
    run.submit("short", make_prompt(1, 4), 30, error_rate=1.0)
    run.step()
    run.submit("long", make_prompt(2, 100), 5)
    num_outputs = []
    while not run.outputs["long"]:
        run.step()
        num_outputs.append(len(run.outputs["short"]))
    assert len(num_outputs) > 5
    assert num_outputs == list(range(2, len(num_outputs) + 2)), "the short one wrote in each step"
    run.run()
    assert run.last_events["long"].stats.target_passes > 5


def test_a_pool_too_small_for_all_preempts_and_everybody_finishes() -> None:
    run = SchedulerRun(num_blocks=10)
    for i in range(6):
        run.submit(f"r{i}", make_prompt(i, 8), 24)
    run.run()
    assert run.scheduler.num_preemptions > 0
    assert all(isinstance(event, Finished) for event in run.last_events.values())


def test_a_preempted_request_finds_what_it_had_computed() -> None:
    run = SchedulerRun(num_blocks=16, max_running=1)
    proposer = run.submit("batch", make_prompt(1, 20), 20, priority=Priority.BATCH)
    while len(run.outputs["batch"]) < 6:
        run.step()
    run.submit("urgent", make_prompt(2, 4), 2)
    run.step()
    assert run.scheduler.num_preemptions == 1
    before = run.runner.num_computed_rows
    run.run()
    assert run.order == ["urgent", "batch"]
    assert proposer.num_builds == 1
    assert run.runner.num_computed_rows - before < 20 + 20, "the prompt was not computed again"
    assert run.last_events["batch"].stats.num_cached_tokens == 0, "its own tokens are no hit"


def test_interactive_requests_start_before_batch_requests() -> None:
    run = SchedulerRun(max_running=1)
    run.submit("batch", make_prompt(1, 6), 4, priority=Priority.BATCH)
    run.submit("second", make_prompt(2, 6), 4)
    run.now += 0.1
    run.submit("third", make_prompt(3, 6), 4)
    run.run()
    assert run.order == ["second", "third", "batch"]


def test_an_interactive_request_takes_the_place_of_a_running_batch_request() -> None:
    run = SchedulerRun(max_running=2)
    for i in range(2):
        run.submit(f"batch {i}", make_prompt(i, 6), 30, priority=Priority.BATCH, error_rate=1.0)
    run.step()
    run.submit("urgent", make_prompt(5, 6), 2, error_rate=1.0)
    assert "urgent" in [scheduled.request_id for scheduled in run.step().scheduled]
    run.run()
    assert run.order[0] == "urgent"


def test_a_batch_request_that_has_waited_long_is_served_first() -> None:
    run = SchedulerRun(max_running=1, ageing_s=10.0)
    run.submit("batch", make_prompt(1, 6), 4, priority=Priority.BATCH)
    run.now += 9.0
    run.submit("interactive", make_prompt(2, 6), 20, error_rate=1.0)
    run.step()
    assert run.outputs["interactive"]
    assert not run.outputs["batch"]
    run.now += 1.5
    run.submit("later", make_prompt(3, 6), 4)
    run.run()
    assert run.order.index("batch") < run.order.index("later")


def test_batch_requests_are_not_starved_by_a_stream_of_interactive_ones() -> None:
    run = SchedulerRun(max_running=1, ageing_s=10.0)
    run.submit("batch", make_prompt(1, 6), 4, priority=Priority.BATCH)
    for i in range(30):
        run.submit(f"r{i}", make_prompt(i + 2, 6), 3, error_rate=1.0)
        run.step()
        run.now += 1.0
    assert isinstance(run.last_events["batch"], Finished)
    assert len(run.live) > 0
    run.run()


def test_batch_requests_get_no_rows_beside_interactive_ones() -> None:
    run = SchedulerRun(num_blocks=128, max_tokens_per_step=64)
    for i in range(3):
        run.submit(f"batch {i}", make_prompt(i, 6), 30, priority=Priority.BATCH, error_rate=1.0)
    for _ in range(3):
        assert len(run.step().scheduled) == 3
    run.submit("urgent", make_prompt(5, 20), 12, error_rate=1.0)
    num_written = [len(run.outputs[f"batch {i}"]) for i in range(3)]
    num_steps = 0
    while "urgent" in run.live:
        assert [scheduled.request_id for scheduled in run.step().scheduled] == ["urgent"]
        num_steps += 1
    assert num_steps == 12, "as many as it would have taken alone"
    assert run.scheduler.num_preemptions == 0, "they keep what they have computed"
    assert [len(run.outputs[f"batch {i}"]) for i in range(3)] == num_written
    assert len(run.step().scheduled) == 3
    run.run()


def test_one_batch_request_at_a_time_grows_into_the_class_above() -> None:
    run = SchedulerRun(num_blocks=256, ageing_s=10.0)
    for i in range(3):
        run.submit(f"batch {i}", make_prompt(i, 6), 4, priority=Priority.BATCH, error_rate=1.0)
        run.now += 0.1
    ends: dict[str, float] = {}
    for i in range(60):
        run.submit(f"r{i}", make_prompt(i + 3, 6), 3, error_rate=1.0)
        for _ in range(2):
            plan = run.step()
            assert sum("batch" in one.request_id for one in plan.scheduled) <= 1
            ends.update({name: run.now for name in run.last_events if name not in ends})
            run.now += 0.5
    times = [ends[f"batch {i}"] - 100.0 for i in range(3)]
    assert 10.0 <= times[0] <= 13.0
    assert all(10.0 <= later - earlier <= 14.0 for earlier, later in itertools.pairwise(times))
    run.run()


def test_steps_of_batch_requests_are_short_while_interactive_ones_may_come() -> None:
    run = SchedulerRun(num_blocks=4096, max_tokens_per_step=512, step_s=lambda n: 0.002 * n)
    run.submit("batch", make_prompt(1, 6000), 4, priority=Priority.BATCH)
    assert run.step().num_tokens == 512, "nobody else has been there"
    run.submit("urgent", make_prompt(2, 6), 2)
    while "urgent" in run.live:
        run.step()
    sizes = [run.step().num_tokens for _ in range(40)]
    assert all(0.03 <= 0.002 * size <= 0.07 for size in sizes[10:]), sizes
    run.now += 61.0
    assert run.step().num_tokens == 512
    run.run()


def test_requests_share_the_seconds_of_the_steps_that_they_are_in() -> None:
    """However many run together and whoever ends last, their shares are the seconds in all."""
    run = SchedulerRun(num_blocks=256, step_s=lambda n: 0.01 * n)
    for number in range(6):
        run.submit(f"r{number}", make_prompt(number + 1, 12), 3 * number + 2)
    while run.live:
        run.step()
    stats = [event.stats for event in run.last_events.values() if isinstance(event, Finished)]
    shares = [one.prefill_share_s + one.decode_share_s for one in stats]
    assert sum(shares) == pytest.approx(run.now - 100.0)
    assert sum(one.prefill_s + one.decode_s for one in stats) > 2 * sum(shares)
    assert all(one.prefill_share_s > 0 for one in stats)


def test_nobody_is_preempted_for_a_request_that_would_not_fit_anyway() -> None:
    run = SchedulerRun(num_blocks=10, max_running=4)
    run.submit("old", make_prompt(1, 20), 2, error_rate=1.0)
    run.step()
    run.submit("batch", make_prompt(2, 5), 3, priority=Priority.BATCH, error_rate=1.0)
    run.step()
    run.submit("large", make_prompt(3, 30), 2)
    run.step()
    assert run.scheduler.num_preemptions == 0
    run.run()


def test_nobody_is_preempted_for_what_the_prefix_cache_holds() -> None:
    run = SchedulerRun(num_blocks=12, max_running=4)
    prompt = make_prompt(1, 24)
    run.submit("first", prompt, 2, error_rate=1.0, priority=Priority.BATCH)
    run.step()
    # Seven blocks are held; the same prompt needs two of its own, not eight.
    run.submit("same", prompt, 2, error_rate=1.0)
    assert [s.request_id for s in run.step().scheduled] == ["same"]
    assert run.scheduler.num_preemptions == 0
    run.run()


def test_first_come_first_served_within_a_class() -> None:
    run = SchedulerRun(max_running=1)
    for i in range(5):
        run.submit(f"r{i}", make_prompt(i, 6), 4)
        run.now += 0.001
    run.run()
    assert run.order == [f"r{i}" for i in range(5)]


def test_a_shared_prefix_is_computed_once() -> None:
    run = SchedulerRun(num_blocks=64)
    prompt = make_prompt(1, 42)
    run.submit("first", prompt, 5)
    run.run()
    run.submit("same", prompt, 5)
    run.submit("longer", (*prompt, 7, 8, 9), 5)
    run.submit("shorter", prompt[:17], 5)
    run.submit("other", make_prompt(2, 42), 5)
    run.submit("tenant", prompt, 5, cache_salt=b"tenant")
    run.run()
    cached = {name: event.stats.num_cached_tokens for name, event in run.last_events.items()}
    assert cached == {
        "first": 0,
        "same": 40,
        "longer": 40,
        "shorter": 16,
        "other": 0,
        "tenant": 0,
    }


def test_output_can_be_a_prefix_of_the_next_prompt() -> None:
    run = SchedulerRun()
    prompt = make_prompt(1, 10)
    run.submit("first", prompt, 12)
    run.run()
    run.submit("next", (*prompt, *run.outputs["first"], 3, 4), 5)
    run.run()
    assert run.last_events["next"].stats.num_cached_tokens == 20  # 21 of 22 tokens were computed


def test_a_request_past_its_deadline_fails_with_its_progress() -> None:
    run = SchedulerRun()
    run.submit("late", make_prompt(1, 6), 20, error_rate=1.0, deadline=run.now + 1.0)
    run.submit("patient", make_prompt(2, 6), 20, error_rate=1.0)
    run.step()
    run.step()
    run.now += 2.0
    run.step()
    event = run.last_events["late"]
    assert isinstance(event, Failed)
    assert isinstance(event.error, DeadlineExceededError)
    assert "2.0 s passed and 2 tokens" in str(event.error)
    run.run()
    assert isinstance(run.last_events["patient"], Finished)


def test_everybody_fails_when_the_engine_stops() -> None:
    run = SchedulerRun(max_running=2)
    for i in range(5):
        run.submit(f"r{i}", make_prompt(i, 6), 8, error_rate=1.0)
    run.step()
    run.record(run.scheduler.fail_all(EngineStoppedError("stopping")))
    run.check_ended()
    assert all(isinstance(event, Failed) for event in run.last_events.values())


def test_more_running_requests_than_rows_are_not_admitted() -> None:
    run = SchedulerRun(max_running=8, max_tokens_per_step=3)
    for i in range(6):
        run.submit(f"r{i}", make_prompt(i, 6), 4)
    assert len(run.step().scheduled) == 3
    run.run()


def test_a_stop_token_ends_the_answer_and_is_its_last_token() -> None:
    run = SchedulerRun(max_tokens_per_step=64)
    prompt = make_prompt(1, 6)
    target = make_target(prompt, 30)
    stop = target[12]
    expected = target[: target.index(stop) + 1]
    sampling = SamplingParams(max_tokens=30, stop_token_ids=frozenset({stop}))
    proposer = NoisyProposer(target, error_rate=0.0)
    run.submit("r", prompt, 30, sampling=sampling, proposer=proposer)
    run.targets["r"] = expected
    run.run()
    assert run.last_events["r"].reason == "stop"
    assert run.outputs["r"] == expected


def test_the_limit_ends_the_answer() -> None:
    run = SchedulerRun()
    run.submit("r", make_prompt(1, 6), 7)
    run.run()
    assert run.last_events["r"].reason == "length"


def test_drafts_do_not_keep_others_from_starting() -> None:
    run = SchedulerRun(num_blocks=20, max_tokens_per_step=512)
    run.submit("long", make_prompt(1, 8), 70, error_rate=1.0)
    assert len(run.step().scheduled[0].draft_token_ids) > 60
    run.submit("short", make_prompt(2, 8), 4, error_rate=1.0)
    assert len(run.step().scheduled) == 2
    run.run()
    assert run.scheduler.num_preemptions == 0


def test_a_request_holds_the_blocks_of_its_known_tokens_only() -> None:
    run = SchedulerRun(num_blocks=40, max_tokens_per_step=512)
    run.submit("r", make_prompt(1, 8), 100, error_rate=1.0)
    for num_written in range(1, 30):
        assert len(run.step().scheduled[0].draft_token_ids) > 30
        num_held = run.pool.num_blocks - run.pool.num_free_blocks
        assert num_held == -(-(8 + num_written) // BLOCK_SIZE)
    run.run()
