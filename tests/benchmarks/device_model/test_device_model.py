"""A device that is not there takes its time, and what it writes is the expected answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from case_files import case_file

from apply_service.cli.main import EXIT_OK
from batching.recipes import EditDrafts
from batching.request import EngineRequest, SamplingParams
from batching.step_costs import StepSize
from batching.step_plan import ScheduledBranch, ScheduledRequest, StepPlan
from benchmarks.__main__ import main
from benchmarks.device_model.command import (
    answers_of,
    closed_loop,
    null_engine,
    null_runner,
    run_load,
)
from benchmarks.device_model.constants import DEVICES, MODELS, Device, DeviceModel, ModelSize
from benchmarks.device_model.edits import Edit, read_edits
from benchmarks.device_model.measured_runner import MeasuredRunner, load_measured
from lookup.proposer import MAIN, Draft

CASES = case_file("everyday_edits")
UNIT = DeviceModel(
    Device(bytes_per_s=100.0, flop_per_s=1000.0, launch_s=0.25),
    ModelSize(layer_bytes=60.0, head_bytes=20.0, kv_bytes_per_token=2.0),
)


@pytest.fixture(scope="module")
def edits() -> list[Edit]:
    return read_edits([CASES], limit=4, max_tokens=2_000)


@pytest.mark.parametrize(
    ("num_rows", "num_plain", "num_context", "seconds"),
    [
        (1, 0, 10, (60 + 20 + 2 * 10) / 100),  # bound by what is read
        (1, 1, 10, (60 + 2 * 10) / 100),  # no row needs the head
        (50, 0, 0, 50 * (60 + 20) / 1000),  # bound by what is multiplied
        (50, 49, 0, (50 * 60 + 20) / 1000),
    ],
)
def test_a_step_takes_what_the_roofline_says(
    num_rows: int, num_plain: int, num_context: int, seconds: float
) -> None:
    size = StepSize(num_rows=num_rows, num_plain_rows=num_plain, num_pairs=0, num_requests=1)
    assert UNIT.step_s(size, num_context_tokens=num_context) == pytest.approx(seconds + 0.25)


def test_every_device_and_model_has_costs_that_grow_with_rows() -> None:
    for device in DEVICES.values():
        for model in MODELS.values():
            measured = list(DeviceModel(device, model).costs().measured_ms.values())
            assert measured == sorted(measured)
            assert measured[0] > 0


@pytest.mark.parametrize("max_draft_tokens", [0, 5, 64])
def test_requests_write_the_expected_answers(edits: list[Edit], max_draft_tokens: int) -> None:
    runner = null_runner(edits, step_s=lambda _plan: 1e-5, max_rows=300)
    with null_engine(runner, max_running=3, max_rows=300, costs=None) as engine:
        run = engine.run(
            [
                partial(edit.request, f"test-{at}", max_draft_tokens=max_draft_tokens)
                for at, edit in enumerate(edits)
            ]
        )
    assert list(run.token_ids) == [edit.answer for edit in edits]
    assert runner.num_steps == run.num_steps
    assert runner.device_s == pytest.approx(1e-5 * run.num_steps)
    assert run.stats.accepted <= run.stats.num_output_tokens


def test_a_branch_goes_on_where_the_draft_fails(edits: list[Edit]) -> None:
    runner = null_runner(edits, step_s=lambda _plan: 0.0, max_rows=300)
    answer = edits[0].answer
    rows = ScheduledRequest(
        request_id="test-0",
        token_ids=(1,),
        start=0,
        block_ids=(0,),
        draft=Draft((*answer[:2], answer[2] + 1), "original", 0),
        has_logits=True,
        output_position=0,
        sampling=SamplingParams(max_tokens=8),
    )
    branch = replace(
        rows,
        token_ids=answer[2:3],
        start=3,
        draft=Draft(answer[3:5], "snippet", 0),
        output_position=3,
    )
    tree = replace(rows, branches=(ScheduledBranch(2, MAIN, branch),))
    (written,) = runner.launch(StepPlan((tree,))).wait().verified
    assert written.token_ids == tuple(answer[:6])
    assert written.branch == 0


def test_a_load_says_how_busy_the_device_was(edits: list[Edit]) -> None:
    device = DeviceModel(DEVICES["l4"], MODELS["1.5b"])
    load = run_load(edits, 2, device=device, max_rows=512, has_time=True)
    assert 0 < load.busy <= 1
    assert load.num_tokens == sum(
        len(edits[at % len(edits)].answer) for at in range(load.num_edits)
    )
    assert load.device_s >= load.num_steps * device.device.launch_s


@dataclass(frozen=True)
class ByteEdit:
    """An answer that copies its prompt, in tokens that a tiny model has."""

    answer: tuple[int, ...]

    def request(
        self, request_id: str, *, max_draft_tokens: int, cache_salt: bytes | None = None
    ) -> EngineRequest:
        return EngineRequest(
            request_id=request_id,
            prompt_token_ids=self.answer,
            sampling=SamplingParams(max_tokens=2 * len(self.answer), stop_token_ids=frozenset({0})),
            proposer=EditDrafts(original=self.answer, snippet_segments=()),
            max_draft_tokens=max_draft_tokens,
            cache_salt=cache_salt or request_id.encode(),
        )


def test_steps_of_a_device_count_and_write_the_expected_answers() -> None:
    edits: Any = [ByteEdit((*range(1, 40), 0)), ByteEdit((*range(60, 20, -1), 0))]
    model_runner, costs = load_measured("tiny", max_rows=64, max_requests=2, device_name="cpu")
    runner = MeasuredRunner(model_runner, answers_of(edits))
    load = closed_loop(edits, 2, runner=runner, costs=costs, max_rows=64)
    assert load.num_tokens == sum(len(edits[at % 2].answer) for at in range(load.num_edits))
    assert load.num_tokens < load.num_rows
    assert 0 < load.device_s <= load.wall_s
    assert 0 < load.num_steps < load.num_tokens


def test_the_commands_print_tables(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    few = ["--edits", "2", "--requests", "2"]
    assert main(["device_model", str(CASES), *few]) == EXIT_OK
    head, counts, *table = capsys.readouterr().out.splitlines()
    assert "bytes_per_s=4800000000000.0" in head
    assert counts.startswith("2 edits, mean prompt ")
    assert table[-1].startswith("| 2 | ")
    assert table[-1].count("|") == table[0].count("|")
    assert main(["host", str(CASES), *few, "--rounds", "2"]) == EXIT_OK
    table = capsys.readouterr().out.splitlines()
    assert table[-1].startswith("| 2 | 130 | ")
    assert table[-1].count("|") == table[0].count("|")
