"""The engine on a tiny random model: right tokens, few passes, no block lost, whatever happens."""

from __future__ import annotations

import dataclasses
import random
import threading
import time
from pathlib import Path

import pytest
import torch
from engine_runs import RunningEngine, ScriptedProposer, running_engine
from transformers import AutoModelForCausalLM

from batching.config import EngineConfig, SchedulerConfig
from batching.engine import build_engine
from batching.errors import (
    DeadlineExceededError,
    DuplicateRequestError,
    EngineStoppedError,
    QueueFullError,
    RequestTooLongError,
    StepFailedError,
)
from batching.events import Cancelled, Failed, Tokens
from batching.pending_step import PendingStep
from batching.request import EngineRequest, Priority, SamplingParams
from batching.step_plan import StepPlan

KV_BYTES = 2 << 20


def make_prompt(seed: int, num_tokens: int) -> tuple[int, ...]:
    generator = random.Random(seed)
    return tuple(generator.randrange(3, 259) for _ in range(num_tokens))


def make_request(
    request_id: str, prompt: tuple[int, ...], max_tokens: int, **changes: object
) -> EngineRequest:
    request = EngineRequest(
        request_id=request_id,
        prompt_token_ids=prompt,
        sampling=SamplingParams(max_tokens=max_tokens),
    )
    return dataclasses.replace(request, **changes)  # type: ignore[arg-type]


def generate_with_transformers(
    model_dir: Path, prompt: tuple[int, ...], num_tokens: int
) -> list[int]:
    model = AutoModelForCausalLM.from_pretrained(model_dir, dtype=torch.float32)
    output = model.generate(
        torch.tensor([prompt]),
        attention_mask=torch.ones(1, len(prompt), dtype=torch.int64),
        max_new_tokens=num_tokens,
        do_sample=False,
        eos_token_id=None,
    )
    return [int(token) for token in output[0, len(prompt) :]]


@pytest.fixture
def running(tiny_model_dir: Path):
    config = EngineConfig(model_path=tiny_model_dir, kv_memory_bytes=KV_BYTES)
    with running_engine(config) as engine:
        yield engine


def test_greedy_tokens_are_those_of_transformers(
    running: RunningEngine, tiny_model_dir: Path
) -> None:
    prompt = make_prompt(1, 700)  # more than one step's budget, so the prefill is chunked
    (outcome,) = running.run([make_request("a", prompt, 40)])
    assert outcome.token_ids == generate_with_transformers(tiny_model_dir, prompt, 40)
    assert outcome.finished.reason == "length"
    assert outcome.finished.stats.target_passes == 41
    assert outcome.finished.stats.decode_passes == 40


def test_the_seconds_of_steps_are_those_of_plans_and_of_the_model(
    tiny_model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = build_engine(EngineConfig(model_path=tiny_model_dir, kv_memory_bytes=KV_BYTES))
    before = engine.stats()
    assert (before.schedule_s, before.execute_s) == (0.0, 0.0)
    launch = engine._runner.launch

    def slow_launch(plan: StepPlan) -> PendingStep:
        time.sleep(0.02)
        return launch(plan)

    monkeypatch.setattr(engine._runner, "launch", slow_launch)
    running = RunningEngine(engine)
    started = time.perf_counter()
    running.run([make_request("a", make_prompt(1, 20), 5)])
    seconds, after = time.perf_counter() - started, engine.stats()
    engine.stop()
    assert after.execute_s >= 0.02 * after.steps > 0
    assert 0 < after.schedule_s < seconds - after.execute_s


def test_a_right_draft_saves_passes_and_a_wrong_one_changes_nothing(running: RunningEngine) -> None:
    prompt = make_prompt(2, 50)
    (plain,) = running.run([make_request("plain", prompt, 100)])
    (right,) = running.run(
        [make_request("right", prompt, 100, proposer=ScriptedProposer(plain.token_ids))]
    )
    wrong_script = [(token + 1) % 259 for token in plain.token_ids]
    (wrong,) = running.run(
        [make_request("wrong", prompt, 100, proposer=ScriptedProposer(wrong_script))]
    )
    assert right.token_ids == wrong.token_ids == plain.token_ids
    assert right.finished.stats.decode_passes == 2  # 65 and 35 tokens
    assert right.finished.stats.accepted == right.finished.stats.drafted == 64 + 34
    assert wrong.finished.stats.decode_passes == 100
    assert wrong.finished.stats.accepted == 0


def test_stop_token_ends_the_answer_inside_an_accepted_draft(running: RunningEngine) -> None:
    prompt = make_prompt(3, 30)
    (plain,) = running.run([make_request("plain", prompt, 60)])
    stop = plain.token_ids[20]
    end = plain.token_ids.index(stop)
    (stopped,) = running.run(
        [
            make_request(
                "stopped",
                prompt,
                60,
                proposer=ScriptedProposer(plain.token_ids),
                sampling=SamplingParams(max_tokens=60, stop_token_ids=frozenset([stop])),
            )
        ]
    )
    assert stopped.token_ids == plain.token_ids[: end + 1]
    assert stopped.finished.reason == "stop"


def test_stop_checker_keeps_only_what_comes_before_the_stop(running: RunningEngine) -> None:
    class StopAfterFive:
        def __init__(self) -> None:
            self._seen = 0

        def push(self, token_ids: tuple[int, ...]) -> int | None:
            before = self._seen
            self._seen += len(token_ids)
            return 5 - before if self._seen > 5 else None

    prompt = make_prompt(4, 20)
    (plain,) = running.run([make_request("plain", prompt, 30)])
    request = make_request(
        "stopped",
        prompt,
        30,
        proposer=ScriptedProposer(plain.token_ids),
        stop_checker=StopAfterFive(),
    )
    (stopped,) = running.run([request])
    assert stopped.token_ids == plain.token_ids[:5]
    assert stopped.finished.reason == "stop"


def test_logprobs_are_those_of_the_unfiltered_distribution(
    running: RunningEngine, tiny_model_dir: Path
) -> None:
    prompt = make_prompt(5, 25)
    sampling = SamplingParams(max_tokens=6, temperature=0.7, top_k=5, seed=3, has_logprobs=True)
    (outcome,) = running.run([make_request("a", prompt, 6, sampling=sampling)])
    model = AutoModelForCausalLM.from_pretrained(tiny_model_dir, dtype=torch.float32)
    tokens = [*prompt, *outcome.token_ids]
    log_probs = model(torch.tensor([tokens])).logits[0].log_softmax(-1).detach()
    expected = [float(log_probs[24 + i, t]) for i, t in enumerate(outcome.token_ids)]
    assert [entry.token_id for entry in outcome.logprobs] == outcome.token_ids
    assert [entry.logprob for entry in outcome.logprobs] == pytest.approx(expected, abs=1e-4)


def test_sixteen_at_once_are_right_in_fewer_passes_than_one_after_another(
    tiny_model_dir: Path,
) -> None:
    config = EngineConfig(model_path=tiny_model_dir, kv_memory_bytes=KV_BYTES)
    requests = [make_request(f"r{i}", make_prompt(i, 10 + 13 * i), 40) for i in range(16)]
    with running_engine(config) as running:
        alone = [running.run([request])[0].token_ids for request in requests]
        steps_alone = running.engine.stats().steps
    with running_engine(config) as running:
        together = [outcome.token_ids for outcome in running.run(requests)]
        steps_together = running.engine.stats().steps
    assert together == alone
    assert steps_together < steps_alone / 4


def test_cancelling_half_gives_every_block_back(running: RunningEngine) -> None:
    before = running.engine.stats().num_free_blocks
    requests = [make_request(f"r{i}", make_prompt(i, 60), 200) for i in range(16)]
    for request in requests:
        running.submit(request)
    while not all(outcome.token_ids for outcome in running.outcomes.values()):
        running.take_event()
    for request in requests[::2]:
        running.engine.cancel(request.request_id)
    outcomes = running.wait_all()
    assert all(isinstance(outcomes[f"r{i}"].last, Cancelled) for i in range(0, 16, 2))
    assert all(len(outcomes[f"r{i}"].token_ids) == 200 for i in range(1, 16, 2))
    assert running.engine.stats().num_free_blocks == before


def test_a_pool_too_small_for_all_preempts_and_still_gives_the_same_tokens(
    running: RunningEngine, tiny_model_dir: Path
) -> None:
    requests = [make_request(f"r{i}", make_prompt(i, 40), 80) for i in range(6)]
    expected = [outcome.token_ids for outcome in running.run(requests)]
    tiny_pool = EngineConfig(
        model_path=tiny_model_dir,
        kv_memory_bytes=16 * 16 * 256,  # 16 blocks of 16 tokens of 256 bytes
    )
    with running_engine(tiny_pool) as small:
        outcomes = small.run(requests)
        assert small.engine.stats().num_free_blocks == 16
        assert small.engine.stats().preemptions > 0
    assert [outcome.token_ids for outcome in outcomes] == expected


def test_a_repeated_prompt_is_not_computed_twice(running: RunningEngine) -> None:
    prompt = make_prompt(7, 320)
    (first,) = running.run([make_request("first", prompt, 10)])
    (second,) = running.run([make_request("second", prompt, 10)])
    (salted,) = running.run([make_request("salted", prompt, 10, cache_salt=b"tenant")])
    assert first.finished.stats.num_cached_tokens == 0
    assert second.finished.stats.num_cached_tokens == 304  # all but the last of 20 blocks
    assert salted.finished.stats.num_cached_tokens == 0
    assert first.token_ids == second.token_ids == salted.token_ids


def test_deadline_fails_the_request_and_frees_it(running: RunningEngine) -> None:
    before = running.engine.stats().num_free_blocks
    late = make_request("late", make_prompt(8, 40), 2000, deadline=time.monotonic() + 0.1)
    (outcome,) = running.run([late])
    assert isinstance(outcome.last, Failed)
    assert isinstance(outcome.last.error, DeadlineExceededError)
    assert running.engine.stats().num_free_blocks == before


@pytest.mark.parametrize(("num_prompt", "max_tokens"), [(0, 5), (5, 0), (5, 4096), (4096, 1)])
def test_what_cannot_fit_is_refused_at_once(
    running: RunningEngine, num_prompt: int, max_tokens: int
) -> None:
    with pytest.raises(RequestTooLongError, match=str(max_tokens)):
        running.engine.submit(make_request("a", make_prompt(0, num_prompt), max_tokens))


def test_the_kv_cache_limits_a_request_like_the_model_does(tiny_model_dir: Path) -> None:
    config = EngineConfig(model_path=tiny_model_dir, kv_memory_bytes=8 * 16 * 256)
    with running_engine(config) as running:
        with pytest.raises(RequestTooLongError, match="the limit is 128"):
            running.engine.submit(make_request("a", make_prompt(0, 100), 29))
        (outcome,) = running.run([make_request("b", make_prompt(0, 100), 28)])
        assert len(outcome.token_ids) == 28


def test_a_full_queue_refuses_and_recovers(tiny_model_dir: Path) -> None:
    config = EngineConfig(
        model_path=tiny_model_dir,
        kv_memory_bytes=KV_BYTES,
        scheduler=SchedulerConfig(max_running=1, max_waiting=1),
    )
    with running_engine(config) as running:
        for name in ("a", "b"):
            running.submit(make_request(name, make_prompt(0, 20), 150))
        with pytest.raises(QueueFullError, match="the limit is 2"):
            running.engine.submit(make_request("c", make_prompt(0, 20), 5))
        running.wait_all()
        running.run([make_request("d", make_prompt(0, 20), 5)])


def test_batch_requests_leave_half_of_the_queue(tiny_model_dir: Path) -> None:
    config = EngineConfig(
        model_path=tiny_model_dir,
        kv_memory_bytes=KV_BYTES,
        scheduler=SchedulerConfig(max_running=1, max_waiting=3),
    )

    def batch_request(name: str, num_tokens: int) -> EngineRequest:
        request = make_request(name, make_prompt(0, 20), num_tokens)
        return dataclasses.replace(request, priority=Priority.BATCH)

    with running_engine(config) as running:
        for name in ("a", "b"):
            running.submit(batch_request(name, 150))
        with pytest.raises(QueueFullError, match="the limit is 2"):
            running.engine.submit(batch_request("c", 5))
        running.submit(make_request("d", make_prompt(0, 20), 5))
        running.wait_all()


def test_stop_fails_what_is_unfinished_and_refuses_what_comes_later(
    running: RunningEngine,
) -> None:
    running.submit(make_request("a", make_prompt(0, 20), 3000))
    running.take_event()
    running.engine.stop()
    outcomes = running.wait_all()
    last = outcomes["a"].last
    assert isinstance(last, Failed)
    assert isinstance(last.error, EngineStoppedError)
    with pytest.raises(EngineStoppedError):
        running.engine.submit(make_request("b", make_prompt(0, 20), 5))


def test_a_failed_step_fails_its_requests_and_the_engine_lives_on(
    tiny_model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = build_engine(EngineConfig(model_path=tiny_model_dir, kv_memory_bytes=KV_BYTES))
    runner = engine._runner
    launch = runner.launch
    is_broken = threading.Event()

    def launch_or_fail(plan: StepPlan) -> PendingStep:
        if is_broken.is_set():
            is_broken.clear()
            raise RuntimeError("device lost")
        return launch(plan)

    monkeypatch.setattr(runner, "launch", launch_or_fail)
    running = RunningEngine(engine)
    try:
        before = engine.stats().num_free_blocks
        running.submit(make_request("a", make_prompt(0, 20), 2000))
        assert isinstance(running.take_event(), Tokens)
        is_broken.set()
        outcomes = running.wait_all()
        last = outcomes["a"].last
        assert isinstance(last, Failed)
        assert isinstance(last.error, StepFailedError)
        assert engine.stats().num_free_blocks == before
        (after,) = running.run([make_request("b", make_prompt(0, 20), 5)])
        assert len(after.token_ids) == 5
    finally:
        engine.stop()


def test_an_id_that_is_live_cannot_be_used_again(running: RunningEngine) -> None:
    running.submit(make_request("a", make_prompt(0, 20), 100))
    with pytest.raises(DuplicateRequestError, match="'a'"):
        running.engine.submit(make_request("a", make_prompt(0, 20), 5))
    outcomes = running.wait_all()
    assert len(outcomes["a"].token_ids) == 100


def test_a_bug_in_the_loop_leaves_nobody_waiting(
    tiny_model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = build_engine(EngineConfig(model_path=tiny_model_dir, kv_memory_bytes=KV_BYTES))

    def fail(_now: float, *, num_lanes: int) -> StepPlan:
        raise IndexError("a bug")

    running = RunningEngine(engine)
    running.submit(make_request("a", make_prompt(0, 20), 3000))
    running.take_event()
    monkeypatch.setattr(engine._scheduler, "schedule", fail)
    outcomes = running.wait_all()
    last = outcomes["a"].last
    assert isinstance(last, Failed)
    assert "a bug" in str(last.error)
    with pytest.raises(EngineStoppedError):
        engine.submit(make_request("b", make_prompt(0, 20), 5))
    engine.stop()
