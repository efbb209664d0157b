"""The arithmetic of a plan against sums done by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from apply_service.cli.main import main
from apply_service.fleet.capacity import (
    Load,
    Machine,
    TooLargeError,
    best_rate,
    dollars_per_million,
    plan_of,
    rate_at,
)
from batching.cost_measurement import read_newest_costs
from batching.machine_file import processor_name
from batching.step_costs import CostRates, StepCosts

# A step takes 10 ms and 0.1 ms a row.
COSTS = StepCosts({1: 10.1, 101: 20.1, 1001: 110.1}, rates=CostRates())
GPU = Machine(
    name="a GPU",
    costs=COSTS,
    kv_bytes_per_token=1000,
    kv_memory_bytes=10_000_000,
    num_cores=4,
    is_cpu=False,
)
LOAD = Load(
    edits_per_s=10.0,
    prompt_tokens=400.0,
    answer_tokens=100.0,
    cached_share=0.75,
    tokens_per_pass=10.0,
    rows_per_pass=20.0,
    text_ms=40.0,
    num_files=50,
)


def test_an_edit_alone_takes_its_prompt_its_passes_and_its_text() -> None:
    alone = rate_at(LOAD, GPU, num_at_once=1)

    prefill_ms, pass_ms = 10.0 + 0.1 * 100, 10.0 + 0.1 * 20
    assert alone.latency_s == pytest.approx((prefill_ms + 10 * pass_ms + 40.0) / 1e3)
    assert alone.edits_per_s == pytest.approx(1e3 / (prefill_ms + 10 * pass_ms))
    on_cpu = rate_at(LOAD, replace(GPU, is_cpu=True), num_at_once=1)
    assert on_cpu.edits_per_s == pytest.approx(1e3 / (prefill_ms + 10 * pass_ms + 40.0))


def test_edits_share_passes_as_far_as_memory_goes() -> None:
    shared = rate_at(LOAD, GPU, num_at_once=8)
    pass_ms = 10.0 + 0.1 * 8 * 20
    assert shared.edits_per_s == pytest.approx(1e3 / (20.0 + 10 * pass_ms / 8))

    assert best_rate(LOAD, GPU).num_at_once == 20  # of 500 tokens with 1,000 bytes each
    assert best_rate(LOAD, replace(GPU, max_running=4)).num_at_once == 4
    with pytest.raises(TooLargeError, match="needs 500000 bytes of KV cache, the machine has 4"):
        plan_of(LOAD, replace(GPU, kv_memory_bytes=400_000))


def test_a_plan_counts_replicas_memory_and_money() -> None:
    best = best_rate(LOAD, GPU)
    busy = replace(LOAD, edits_per_s=10 * best.edits_per_s)
    plan = plan_of(busy, GPU, utilisation=0.5)

    assert plan.num_replicas == 20
    assert plan.kv_bytes == pytest.approx(50 * 400_000 + 20 * best.num_at_once * 500_000)
    assert plan.redis_bytes == pytest.approx(1.05 * 50 * 400_000)
    assert plan.redis_bytes_per_s == pytest.approx(0.35 * busy.edits_per_s * 400_000)
    dollars = dollars_per_million(plan, busy, 3.6)
    assert dollars == pytest.approx(20 * 3.6 / 3600 / busy.edits_per_s * 1e6)


def test_edits_without_a_model_cost_their_text_alone() -> None:
    text = replace(LOAD, prompt_tokens=0.0, answer_tokens=0.0)

    assert best_rate(text, GPU).edits_per_s == pytest.approx(4 * 1e3 / 40.0)


def test_the_costs_of_this_machine_are_those_kept_last(tmp_path: Path) -> None:
    def keep(name: str, **identity: str) -> None:
        content = {
            "identity": {"processor": processor_name(), "version": "5", **identity},
            "measured_ms": {"1": 2.0},
            "rates": {"plain_row_ms": 0.0, "pair_ms": 0.0, "request_ms": 0.0},
        }
        (tmp_path / f"{name}.json").write_text(json.dumps(content))

    assert read_newest_costs(tmp_path) is None
    (tmp_path / "broken.json").write_text("{")
    keep("other", processor="another one")
    keep("old", version="0")
    assert read_newest_costs(tmp_path) is None
    keep("own", dtype="bfloat16")
    found = read_newest_costs(tmp_path)
    assert found is not None
    assert found.identity["dtype"] == "bfloat16"
    assert found.costs.measured_ms == {1: 2.0}


def test_the_command_prints_a_plan(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--edits-per-s", "50", "--tokens", "600:150", "--gpu", "h100"]
    assert main(["plan", *flags, "--dollars-per-hour", "2.5", "--files", "1000"]) == 0
    shown = capsys.readouterr().out
    for word in ("replicas  ", "KV memory", "Redis traffic", "dollars per million edits"):
        assert word in shown


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--tokens", "600"], "--tokens is '600'; give PROMPT:ANSWER"),
        (["--tokens", "600:-1"], "--tokens is -1; give 0 to"),
        (["--tokens", "600:10", "--cached", "2"], "--cached is 2; give 0 to 1"),
        (["--tokens", "9000000:10"], "needs 516096573440 bytes of KV cache"),
    ],
)
def test_wrong_figures_are_told(
    flags: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "--edits-per-s", "1", "--gpu", "h100", *flags]) == 2
    assert words in capsys.readouterr().err
