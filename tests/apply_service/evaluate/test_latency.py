"""The latency bench over a tiny random model: every way is taken, and nothing is timed twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from case_files import case_file

from apply_service.cli.main import main
from apply_service.evaluate.edit_session import EditTiming
from apply_service.evaluate.latency_report import (
    LatencyRow,
    TimedRun,
    format_latency_report,
    summarise_latency,
)

CASES = case_file("short_edits")


def run_of(total_s: float, *, passes: int = 1, model_s: float = 0.0, problem: str = "") -> TimedRun:
    timing = EditTiming(
        status="" if problem else "applied",
        problem=problem,
        total_s=total_s,
        plan_s=0.01,
        prompt_s=0.02,
        verdict_s=0.03,
        num_prompt_tokens=100,
        num_cached_tokens=60,
        target_passes=passes,
    )
    return TimedRun(timing=timing, draft_s=0.04, model_s=model_s)


def row_of(name: str, scope: str = "auto", **runs: TimedRun) -> LatencyRow:
    return LatencyRow(case_id=name, scope=scope, num_lines=400, runs=runs)


def test_percentiles_shares_and_ratios() -> None:
    rows = [
        row_of(str(seconds), cold=run_of(float(seconds), model_s=seconds - 0.2), warm=run_of(0.5))
        for seconds in range(1, 11)
    ]
    rows.append(row_of("decided", no_model=run_of(0.1, passes=0), cold=run_of(0.1, passes=0)))
    rows.append(row_of("broken", cold=run_of(0.1, passes=0, problem="no-marker")))
    long = row_of("9", "file", file_cold=run_of(54.0), file_warm=run_of(2.0))
    figures = summarise_latency(rows, [(rows[8], long)])
    cold = figures["paths"]["cold"]
    assert (cold["n"], cold["p50_s"], cold["p90_s"], cold["max_s"]) == (10, 5, 9, 10)
    assert cold["text_share"] == pytest.approx(10 * 0.1 / 55)
    assert cold["text_share_p50"] == pytest.approx(0.1 / 6, rel=0.25)
    assert cold["not_model_share"] == pytest.approx(10 * 0.2 / 55)
    assert sum(cold["shares"].values()) == pytest.approx(1.0)
    assert cold["cached_share"] == pytest.approx(0.6)
    assert figures["paths"]["no_model"]["n"] == 1, "an edit that asks no model is not cold"
    assert figures["problems"] == {"no-marker": 1}
    ratios = figures["region_against_file"]
    assert ratios["cold"]["ratio_of_sums"] == pytest.approx(6.0)
    assert ratios["warm"]["ratio_p50"] == pytest.approx(4.0)


def test_without_long_files_there_is_no_ratio() -> None:
    figures = summarise_latency([row_of("1", cold=run_of(1.0))], [])
    assert figures["region_against_file"]["cold"] == {"n": 0}
    facts = {"model": "m", "dtype": "float32", "threads": 1, "processor": "p"}
    rest = {"versions": {"torch": "2"}, "long_files_over_the_context": 0}
    assert "scope file takes" not in format_latency_report({**facts, **rest, **figures})


def run_bench(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[Any, str]:
    assert main(["bench", "latency", "--cases", str(CASES), *arguments, "--json"]) == 0
    streams = capsys.readouterr()
    return json.loads(streams.out), streams.err


@pytest.fixture
def model_flags(
    tiny_model_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, ...]:
    monkeypatch.setenv("APPLY_SERVICE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("APPLY_SERVICE_DRAFT_BUDGET", "fixed")
    model = ("--model", str(tiny_model_dir), "--profile", "embedded")
    return (*model, "--dtype", "float32", "--threads", "1")


def test_every_way_is_timed_and_finished_edits_are_not_timed_again(
    model_flags: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "latency.jsonl"
    size = ["--limit", "2", "--long-limit", "1", "--min-lines", "20", "--out", str(out)]
    report, progress = run_bench(capsys, *model_flags, *size)
    assert "\x1b" not in progress, "bars are for terminals"
    assert set(report["paths"]) >= {"cold", "warm", "repeat", "file_cold", "file_warm"}
    paths = report["paths"]
    assert paths["cold"]["cached_share"] == 0
    assert 0 < paths["warm"]["cached_share"] < paths["repeat"]["cached_share"]
    assert paths["file_warm"]["cached_share"] > 0
    for figures in paths.values():
        assert sum(figures["shares"].values()) == pytest.approx(1.0)
        assert all(share >= 0 for name, share in figures["shares"].items() if name != "other")
    assert report["region_against_file"]["warm"]["n"] == 1
    assert (report["threads"], report["dtype"], report["device"]) == (1, "float32", "cpu")
    kept = out.read_bytes()
    assert run_bench(capsys, *model_flags, *size)[0] == report
    assert out.read_bytes() == kept, "all of it was found"
    assert (
        main(["bench", "latency", "--cases", str(CASES), *model_flags, *size, "--seed", "4"]) == 1
    )
    assert "seed is 0 there and 4 now" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--limit", "-1"], "--limit is -1"),
        (["--limit", "0", "--long-limit", "0"], "at least 1 case"),
        (["--cases", "nowhere.jsonl"], "nowhere.jsonl: cannot be read"),
        (["--model", "no/such/model"], "no/such/model"),
    ],
)
def test_what_cannot_be_is_refused(
    flags: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "latency", "--cases", str(CASES), *flags]) == 1
    assert message in capsys.readouterr().err
