"""The GPU bench on the CPU: its figures hang together, whatever they are worth there."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from batching.config import ModelInfo
from batching.model.random_model import SHAPE_NAMES, make_random_model
from batching.pending_step import FinishedStep
from batching.step_plan import StepPlan, StepResult
from benchmarks.__main__ import main
from benchmarks.gpu import command as gpu
from benchmarks.gpu.attention import measure_attention
from benchmarks.gpu.clock import Roofline, measure_ms
from benchmarks.gpu.command import GpuBenchError, read_trace
from benchmarks.gpu.lookup import make_answer, measure_lookup
from benchmarks.gpu.steps import StepBench

CPU = torch.device("cpu")
SMALL = [
    *("--device", "cpu", "--shape", "tiny", "--dtype", "fp32", "--steps", "2"),
    *("--k", "0,4", "--batch", "1,3", "--context", "20", "--attention-context", "70"),
    *("--lookup-tokens", "18"),
]


def test_of_the_recorded_drafts_ninety_seven_percent_held() -> None:
    trace = read_trace(Path(gpu.__file__).with_name("acceptance_trace.txt"))
    assert len(trace) == 128
    assert sum(trace) / len(trace) == pytest.approx(0.97, abs=1e-3)


def test_every_size_is_timed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gpu", *SMALL, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["shape"] == "tiny"
    assert report["num_graphs"] == 0
    sizes = [(step["batch"], step["k"], step["num_rows"]) for step in report["steps"]]
    assert sizes == [(1, 0, 1), (1, 4, 5), (3, 0, 3), (3, 4, 15)]
    for step in report["steps"]:
        assert step["rows_per_s"] == pytest.approx(step["num_rows"] / step["step_ms"] * 1e3)
        assert step["floor_ratio"] == pytest.approx(step["step_ms"] / step["floor_ms"])
        assert (step["accepted_per_s"] > 0) is (step["k"] > 0)
        assert step["host_ms"] is None
        assert step["graph_share"] == 0
    assert [times["num_rows"] for times in report["attention"]] == [1, 65]
    assert report["versions"]["torch"] == torch.__version__
    for times in report["prompt_lookup"]:
        assert times["num_tokens"] == 16
        assert times["tokens_per_s"] == pytest.approx(16 / times["seconds"])
        assert 1 <= times["num_passes"] <= 16


def test_every_part_is_written_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A lent machine may be gone before the last part."""

    def gone(*_arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(gpu, "_measure_attention", gone)
    out = tmp_path / "report.json"
    assert main(["gpu", *SMALL, "--out", str(out)]) == 130
    report = json.loads(out.read_text())
    assert [(step["batch"], step["k"]) for step in report["steps"]] == [
        (1, 0),
        (1, 4),
        (3, 0),
        (3, 4),
    ]
    assert report["prompt_lookup"] == []


@pytest.mark.skipif(find_spec("torchao") is not None, reason="torchao is there")
def test_fp8_without_torchao_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gpu", *SMALL, "--weights", "fp8"]) == 1
    assert "needs torchao" in capsys.readouterr().err


def test_the_kernel_may_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    few = ("--k", "0", "--batch", "1", "--steps", "1", "--lookup-tokens", "0", "--no-graphs")
    assert main(["gpu", *SMALL, *few, "--attention-context", "none", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["attention"], report["prompt_lookup"], len(report["steps"])) == ([], [], 1)


def test_the_table_has_a_line_for_each_size(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "figures.json"
    assert main(["gpu", *SMALL, "--out", str(path)]) == 0
    assert len(json.loads(path.read_text())["steps"]) == 4
    lines = capsys.readouterr().out.splitlines()
    assert "97.0% of the drafts hold" in lines[0]
    assert [line.split()[:3] for line in lines[4:8]] == [
        ["1", "0", "1"],
        ["1", "4", "5"],
        ["3", "0", "3"],
        ["3", "4", "15"],
    ]


@pytest.mark.skipif(
    find_spec("triton") is None or os.environ.get("TRITON_INTERPRET") != "1",
    reason="the kernels are not interpreted here",
)
def test_it_runs_on_the_kernels_of_a_gpu(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from kernels.gpu.triton_ops import triton_ops

    for module in ("batching.model.runner", "benchmarks.gpu.attention"):
        monkeypatch.setattr(f"{module}.select_ops", lambda _device, **_options: triton_ops())
    monkeypatch.setattr("benchmarks.gpu.clock._NUM_REPEATS", 1)
    monkeypatch.setattr("benchmarks.gpu.steps._NUM_WARM_UPS", 1)
    few = ("--k", "3", "--batch", "2", "--steps", "1", "--attention-context", "20")
    assert main(["gpu", *SMALL, *few, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [step["num_rows"] for step in report["steps"]] == [8]
    assert [times["num_rows"] for times in report["attention"]] == [1]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gpu"]) == 1
    assert "--device cpu --shape tiny" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "1.0\nmany", "0.5\n1.5"])
def test_a_bad_trace_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "trace"
    path.write_text(text)
    with pytest.raises(GpuBenchError, match="is no trace"):
        read_trace(path)


def test_a_trace_is_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text("1\n0.25\n")
    assert read_trace(path) == (1.0, 0.25)


def test_a_floor_is_the_larger_of_both_times() -> None:
    roofline = Roofline(bytes_per_s=1e9, flops_per_s=1e12)
    assert roofline.floor_ms(num_bytes=5e6, num_flops=1e9) == pytest.approx(5.0)
    assert roofline.floor_ms(num_bytes=5e6, num_flops=9e9) == pytest.approx(9.0)


def test_the_clock_runs_warm_ups_besides_the_repeats() -> None:
    calls: list[None] = []
    assert measure_ms(lambda: calls.append(None), CPU, repeats=4) >= 0.0
    assert len(calls) == 3 + 4


def test_shares_of_the_roofline_are_shares() -> None:
    shape = make_random_model("tiny", dtype="float32", device=CPU).shape
    times = measure_attention(
        shape,
        num_heads=shape.num_heads,
        num_rows=3,
        context=40,
        dtype=torch.float32,
        device=CPU,
        roofline=Roofline(bytes_per_s=1e15, flops_per_s=1e3),
    )
    flops = 4 * 3 * shape.num_heads * shape.head_dim * 40
    assert times.roofline_share == pytest.approx(flops / times.ours_ms)
    assert times.bandwidth_share < 1e-3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--k", "8,x"], "'x' is no number; give one of 0 or more"),
        (["--k=-1"], "'-1' is no number"),
        (["--batch", "4,0"], "0 is too small; give a number of 1 or more"),
        (["--steps", "0"], "0 is too small"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["gpu", *arguments])
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--context", "--attention-context"])
def test_contexts_beyond_the_models_are_refused(
    flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gpu", *SMALL, flag, "50000"]) == 1
    assert "the limit is 40960; lower --context" in capsys.readouterr().err


def test_a_folder_that_is_not_there_is_said_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gpu", *SMALL, "--out", str(tmp_path / "none" / "x.json")]) == 1
    assert "none is no folder; make it, or give another --out" in capsys.readouterr().err


def test_the_told_answer_leaves_the_prompt_where_drafts_break_off() -> None:
    prompt = list(range(0, 40, 2))
    answer = make_answer(prompt, (1.0, 0.5), k=4, length=12)
    assert [at for at in range(12) if answer[at] != prompt[at]] == [7]
    assert answer[7] == prompt[7] + 1


def test_prompt_lookup_takes_as_many_passes_as_its_trace_has_drafts() -> None:
    model = make_random_model("tiny", dtype="float32", device=CPU, attention="sdpa").model
    times = measure_lookup(model, k=8, context=120, num_tokens=82, trace=(1.0,))
    # Nothing is found for the first tokens; a draft of eight brings nine from then on.
    assert 80 // 9 <= times.num_passes <= 80 // 9 + 3
    assert (
        measure_lookup(model, k=8, context=120, num_tokens=82, trace=(1.0, 0.0)).num_passes
        > times.num_passes
    )


class CountingRunner:
    """Takes plans and does nothing with them."""

    num_graph_steps = 0

    def __init__(self) -> None:
        self.starts: list[list[int]] = []
        self.model_info = make_info()

    def launch(self, plan: StepPlan) -> FinishedStep:
        self.starts.append([scheduled.start for scheduled in plan.scheduled])
        for scheduled in plan.scheduled:
            assert scheduled.start + scheduled.num_rows <= len(scheduled.block_ids) * 16
        return FinishedStep(StepResult(()), 1e-3)


def make_info() -> ModelInfo:
    return ModelInfo(
        max_position=1000,
        vocab_size=256,
        kv_bytes_per_token=8,
        num_kv_tokens=1000,
        dtype="float32",
        num_parameters=1000,
        fingerprint="none",
    )


def test_requests_move_on_by_the_trace_and_start_anew_before_they_are_full() -> None:
    runner = CountingRunner()
    bench = StepBench(
        runner,  # type: ignore[arg-type]
        make_random_model("tiny", dtype="float32", device=CPU).shape,
        roofline=Roofline(1e9, 1e9),
        context=10,
        device=CPU,
        trace=(1.0, 0.5),
    )
    bench.measure(batch=2, k=4, num_steps=2)
    assert runner.starts[:4] == [[10, 10], [15, 13], [18, 18], [23, 21]]
    assert min(min(starts) for starts in runner.starts) == 10


def test_every_shape_is_known_to_the_model_maker() -> None:
    assert set(SHAPE_NAMES) == {"7b", "1.5b", "135m", "tiny"}
    loaded = make_random_model("135m", dtype="bfloat16", device=torch.device("meta"))
    num_parameters = sum(parameter.numel() for parameter in loaded.model.parameters())
    assert num_parameters == pytest.approx(134.5e6, rel=0.01)
