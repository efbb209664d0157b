"""The growth bench over a tiny random model: each axis has its points, and its picture."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from apply_service.config import Settings
from apply_service.evaluate.edit_session import EditSession
from benchmarks.__main__ import main
from benchmarks.growth import axes as growth_axes
from benchmarks.growth import plot as growth_plot
from benchmarks.growth.axes import AXES, GrowthEditError, GrowthPoint, measure_point
from benchmarks.growth.sized_file import module_of, one_function_update, spread_functions


@pytest.fixture
def model_flags(
    tiny_model_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, ...]:
    monkeypatch.setenv("APPLY_SERVICE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("APPLY_SERVICE_DRAFT_BUDGET", "fixed")
    model = ("--model", str(tiny_model_dir), "--profile", "embedded")
    return (*model, "--dtype", "float32", "--threads", "1")


def run_bench(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main(["growth", *arguments, "--json", "--rounds", "1"]) == 0
    return json.loads(capsys.readouterr().out)


def test_points_are_kept_and_drawn(
    model_flags: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, plots = tmp_path / "points.jsonl", tmp_path / "plots"
    arguments = [*model_flags, "--axis", "file", "--values", "200", "--out", str(out)]
    report = run_bench(capsys, *arguments, "--plot", str(plots))
    assert [(row["axis"], row["value"]) for row in report["rows"]] == [("file", 200)]
    assert (report["threads"], report["dtype"]) == (1, "float32")
    assert (plots / "growth-file.png").read_bytes().startswith(b"\x89PNG")
    kept = out.read_bytes()
    assert run_bench(capsys, *arguments)["rows"] == report["rows"]
    assert out.read_bytes() == kept, "all points were found"


@pytest.fixture(scope="module")
def session(tiny_model_dir: Path) -> Iterator[EditSession]:
    settings = Settings(
        model=str(tiny_model_dir), profile="embedded", threads=1, draft_budget="fixed"
    )
    with EditSession.load(settings) as session:
        yield session


def test_a_longer_file_does_not_cost_more_tokens(session: EditSession) -> None:
    small, large = (measure_point(session, "file", lines, num_rounds=1) for lines in (200, 1000))
    assert large.prompt_tokens < 1.5 * small.prompt_tokens
    assert large.edit_s > large.model_s > 0
    assert large.target_passes > 0


def test_a_larger_edit_costs_more_tokens(session: EditSession) -> None:
    small, large = (measure_point(session, "edit", lines, num_rounds=1) for lines in (2, 16))
    assert large.prompt_tokens > small.prompt_tokens
    assert large.answer_tokens > small.answer_tokens


def test_edits_at_once_are_all_counted(
    session: EditSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growth_axes, "_MIN_EDITS", 2)
    point = measure_point(session, "concurrency", 3, num_rounds=1)
    assert point.num_edits == sum(point.statuses.values()) == 3
    assert point.slowest_s >= point.edit_s
    assert point.edits_per_s > 1 / (3 * point.slowest_s)


def test_an_edit_that_fails_ends_the_bench(session: EditSession) -> None:
    with pytest.raises(GrowthEditError, match="edit at 256 ended in prompt-too-long"):
        measure_point(session, "edit", 256, num_rounds=1)


def test_every_kind_of_point_can_be_drawn(tmp_path: Path) -> None:
    point = GrowthPoint(
        **dict.fromkeys(
            ("edit_s", "slowest_s", "plan_s", "draft_s", "model_s", "verdict_s", "edits_per_s"), 0.5
        ),
        **dict.fromkeys(("prompt_tokens", "answer_tokens", "target_passes"), 3.0),
        axis="k",
        value=0,
        draft_budget="auto",
        num_edits=1,
        statuses={"applied": 1},
    )
    rows = [
        msgspec.structs.replace(point, axis=axis, value=value, draft_budget=budget)
        for axis in AXES
        for value in AXES[axis].values
        for budget in ("auto", "fixed")
    ]
    paths = growth_plot.plot_rows(rows, tmp_path)
    assert [path.name for path in paths] == [f"growth-{axis}.png" for axis in AXES]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)


def test_the_module_has_the_lines_and_every_edit_its_new_ones() -> None:
    assert module_of(300).count("\n") <= 300
    text = module_of(1000)
    for number in spread_functions(1000, 80):
        assert f"def convert_{number}(" in text
    updates = [one_function_update(3, num_new_lines=count) for count in (2, 8)]
    assert updates[1].count("\n") - updates[0].count("\n") == 6
    assert len(set(spread_functions(1000, 80))) == 80


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--rounds", "0"], "--rounds is 0"),
        (["--values", "3"], "--values is of one axis"),
        (["--axis", "edit", "--values", "3"], "in steps of 2"),
        (["--axis", "k", "--values", "300"], "from 0 to 256"),
        (["--plot", f"{__file__}/pictures"], "name a folder that can be written to"),
    ],
)
def test_what_cannot_be_is_refused(
    flags: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["growth", *flags]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("flags", [["--axis", "size"], ["--axis", "k", "--values", "a,b"]])
def test_an_axis_that_is_none_is_said(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["growth", *flags])
    assert "with commas between" in capsys.readouterr().err


def test_pictures_need_matplotlib(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(growth_plot, "find_spec", lambda _name: None)
    assert main(["growth", "--plot", str(tmp_path)]) == 1
    assert "needs matplotlib" in capsys.readouterr().err
