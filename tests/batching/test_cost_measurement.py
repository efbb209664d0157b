"""Measuring what steps cost: within its time, without a trace, and only once a machine."""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from pathlib import Path

import pytest
from engine_runs import running_engine

from batching import cost_measurement
from batching.config import EngineConfig
from batching.cost_measurement import StepCostFile, StepPlans, measure_step_costs
from batching.engine import build_engine
from batching.request import EngineRequest, SamplingParams
from batching.step_costs import CostRates, StepCosts, StepSize
from batching.step_plan import StepPlan

COSTS = StepCosts({1: 2.0, 65: 9.0}, rates=CostRates(plain_row_ms=0.1, pair_ms=0.2, request_ms=0.3))


class FakeClock:
    """Time that passes only while a step is computed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, row_ms: float) -> None:
        self.now = 0.0
        self.sizes: list[StepSize] = []
        self._row_ms = row_ms
        monkeypatch.setattr(cost_measurement.time, "perf_counter", lambda: self.now)

    def execute(self, plan: StepPlan) -> None:
        step = StepSize.of(plan)
        self.sizes.append(step)
        milliseconds = 20.0 + self._row_ms * (step.num_rows - 0.25 * step.num_plain_rows)
        milliseconds += 0.0001 * step.num_pairs + 2.0 * (step.num_requests - 1)
        self.now += milliseconds / 1000.0


def plans(num_blocks: int = 1000, max_rows: int = 512) -> StepPlans:
    return StepPlans(num_blocks=num_blocks, block_size=16, max_rows=max_rows, max_context=4096)


def test_the_table_is_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock(monkeypatch, row_ms=1.0)
    costs = measure_step_costs(clock.execute, plans(), budget_s=60.0)
    assert len(costs.measured_ms) > 10
    for num_rows, milliseconds in costs.measured_ms.items():
        # A row without context sees the rows before it; those pairs are part of the table.
        assert milliseconds == pytest.approx(20 + num_rows + 0.0001 * num_rows**2)
    assert costs.rates.plain_row_ms == pytest.approx(0.25)
    assert costs.rates.pair_ms == pytest.approx(0.0001, rel=0.01)
    assert costs.rates.request_ms == pytest.approx(2.0, rel=0.15)


@pytest.mark.parametrize("row_ms", [0.1, 1.0, 10.0, 1000.0])
def test_measuring_keeps_to_its_time(monkeypatch: pytest.MonkeyPatch, row_ms: float) -> None:
    clock = FakeClock(monkeypatch, row_ms=row_ms)
    costs = measure_step_costs(clock.execute, plans(), budget_s=0.8)
    one_row_s = (20.0 + row_ms) / 1000.0
    # The first draft is tried on the guess that its rows cost little more than one.
    assert clock.now <= 0.8 + 2 * 65 * one_row_s if row_ms > 5 else 0.81
    assert costs.step_ms(StepSize(num_rows=1, num_plain_rows=0, num_pairs=0, num_requests=1)) > 0


def test_a_size_that_is_slow_until_it_is_captured_counts_as_it_is_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a GPU a step is launched kernel by kernel at first, then captured, and then replayed."""
    clock = FakeClock(monkeypatch, row_ms=0.01)
    num_runs: Counter[StepSize] = Counter()

    def execute(plan: StepPlan) -> None:
        clock.execute(plan)
        num_runs[StepSize.of(plan)] += 1
        clock.now += {1: 0.010, 2: 0.100}.get(num_runs[StepSize.of(plan)], 0.0)

    costs = measure_step_costs(execute, plans(max_rows=2049), budget_s=60.0, num_tries=4)
    assert max(costs.measured_ms) == 2049
    for num_rows, milliseconds in costs.measured_ms.items():
        assert milliseconds == pytest.approx(20 + 0.01 * num_rows + 0.0001 * num_rows**2)


def test_a_small_cache_is_measured_as_far_as_it_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock(monkeypatch, row_ms=1.0)
    costs = measure_step_costs(clock.execute, plans(num_blocks=3, max_rows=40), budget_s=60.0)
    assert max(costs.measured_ms) == 33
    assert all(step.num_rows <= 40 and step.num_pairs <= 48 * 48 for step in clock.sizes)


def test_a_file_keeps_the_costs(tmp_path: Path) -> None:
    file = StepCostFile(tmp_path / "new" / "folder", model="m", dtype="float32")
    assert file.load() is None
    file.store(COSTS)
    loaded = StepCostFile(tmp_path / "new" / "folder", model="m", dtype="float32").load()
    assert loaded is not None
    assert (loaded.measured_ms, loaded.rates) == (COSTS.measured_ms, COSTS.rates)
    other = StepCostFile(tmp_path / "new" / "folder", model="m", dtype="int8")
    assert other.load() is None


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"measured_ms": {"1": "x"}, "rates": {}}',
        '{"measured_ms": {}, "rates": {}}',
        '{"measured_ms": {"1": -5}, "rates": {}}',
        '{"measured_ms": {"1": 5}, "rates": {"a": 1}}',
    ],
)
def test_a_damaged_file_is_measured_again(tmp_path: Path, content: str) -> None:
    file = StepCostFile(tmp_path, model="m")
    file.store(COSTS)
    (path,) = tmp_path.iterdir()
    path.write_text(content)
    assert file.load() is None
    file.store(COSTS)
    assert file.load() is not None


def test_a_folder_that_cannot_be_written_to_is_only_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    with caplog.at_level(logging.WARNING):
        StepCostFile(blocked, model="m").store(COSTS)
    assert "not kept" in caplog.text


def test_a_second_start_does_not_measure(
    tiny_model_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = EngineConfig(
        model_path=tiny_model_dir,
        kv_memory_bytes=8 << 20,
        draft_budget="auto",
        step_cost_dir=tmp_path,
    )
    started = time.perf_counter()
    build_engine(config).stop()
    assert time.perf_counter() - started < 60
    files = {path: json.loads(path.read_text()) for path in tmp_path.iterdir()}
    ((path, stored),) = [(path, file) for path, file in files.items() if "measured_ms" in file]
    assert stored["identity"]["dtype"] == "float32"
    monkeypatch.setattr("batching.model.runner.measure_step_costs", _must_not_measure)
    monkeypatch.setattr("batching.model.row_bits_choice.choose_row_bits", _must_not_measure)
    request = EngineRequest(
        request_id="r", prompt_token_ids=(5, 6, 7), sampling=SamplingParams(max_tokens=4)
    )
    with running_engine(config) as running:
        (outcome,) = running.run([request])
    assert outcome.finished.stats.num_output_tokens == 4
    assert json.loads(path.read_text())["measured_ms"] != stored["measured_ms"], "steps correct it"


def _must_not_measure(*_args: object, **_kwargs: object) -> StepCosts:
    raise AssertionError("the costs are known already")
