"""Which way greedy steps go through the head: by measured times, and with the same tokens."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import batching.model.runner
from batching.config import EngineConfig
from batching.model.head_choice import HeadChoice, measure_head_choice
from batching.model.runner import ModelRunner
from batching.request import SamplingParams
from batching.step_plan import ScheduledRequest, StepPlan
from kernels.op_set import Ops
from kernels.ops import reference_ops
from kernels.verification import Verification
from lookup.proposer import Draft


def make_clock(times: list[float]) -> Callable[[Callable[[], object]], float]:
    """Runs what is timed, and says the next of `times`."""

    def time_ms(run: Callable[[], object]) -> float:
        assert isinstance(run(), Verification)
        return times.pop(0)

    return time_ms


def test_nothing_measured_writes_logits() -> None:
    assert not HeadChoice().is_fused(1)


@pytest.mark.parametrize(
    ("num_rows", "is_fused"), [(1, True), (2, False), (4, False), (5, True), (9, True), (99, True)]
)
def test_a_step_goes_the_way_of_the_next_larger_size(num_rows: int, is_fused: bool) -> None:
    choice = HeadChoice((1, 4, 9), (True, False, True))
    assert choice.is_fused(num_rows) is is_fused


def test_the_faster_way_is_taken_for_each_size() -> None:
    # In pairs: without logits, with them.
    clock = make_clock([1.0, 2.0, 3.0, 2.0, 5.0, 5.0, 1.0, 9.0])
    choice = measure_head_choice(torch.eye(5, 3), ops=reference_ops(), max_rows=20, time_ms=clock)
    assert choice == HeadChoice((1, 4, 16, 20), (True, False, False, True))


def make_plan(*, has_logprobs: bool = False, temperature: float = 0.0) -> StepPlan:
    return StepPlan(
        (
            ScheduledRequest(
                request_id="a",
                token_ids=(5, 6, 7),
                start=0,
                block_ids=(0,),
                draft=Draft((8, 9), "test", 0),
                has_logits=True,
                output_position=0,
                sampling=SamplingParams(
                    max_tokens=9, has_logprobs=has_logprobs, temperature=temperature
                ),
            ),
        )
    )


@pytest.fixture
def fused_calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Rows of each greedy call that leaves logits out, in runners made from now on."""
    calls: list[int] = []
    ops = reference_ops()
    greedy_head = ops.greedy_head
    assert greedy_head is not None

    def note(hidden: torch.Tensor, *args: object, **kwargs: object) -> Verification:
        if not kwargs["writes_logits"]:
            calls.append(hidden.shape[0])
        return greedy_head(hidden, *args, **kwargs)

    def choose(_device: torch.device, **_options: bool) -> Ops:
        return dataclasses.replace(ops, greedy_head=note)

    monkeypatch.setattr(batching.model.runner, "select_ops", choose)
    return calls


def test_a_head_without_logits_gives_the_same_tokens(
    tiny_model_dir: Path, fused_calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # As transformers made it: on the CPU the head is another kind of layer, which is left alone.
    monkeypatch.setattr("batching.model.loading.use_onednn_linear", lambda _model: None)
    runner = ModelRunner(EngineConfig(model_path=tiny_model_dir, kv_memory_bytes=1 << 20))
    expected = runner.execute(make_plan())
    assert fused_calls == [], "nothing was measured, so logits are written"
    choice = runner.measure_head(lambda run: 1.0 if "leave_out" in run.__name__ else 2.0)
    assert set(choice.are_fused) == {True}
    fused_calls.clear()
    assert runner.execute(make_plan()) == expected
    assert fused_calls == [3]
    runner.execute(make_plan(has_logprobs=True))
    runner.execute(make_plan(temperature=0.7))
    assert fused_calls == [3], "logprobs and sampling need the logits"


def test_other_kinds_of_heads_are_left_alone(tiny_model_dir: Path, fused_calls: list[int]) -> None:
    runner = ModelRunner(EngineConfig(model_path=tiny_model_dir, kv_memory_bytes=1 << 20))
    assert runner.measure_head(lambda _run: 1.0) == HeadChoice()
    assert fused_calls == []
