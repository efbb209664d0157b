"""Open-loop load on a real server over real HTTP, and what the bench makes of its answers."""

from __future__ import annotations

import json
import statistics
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from oracle_service import OracleService
from server_thread import serving
from tiny_model import write_tiny_model

from apply_service.cli.main import EXIT_ERROR, EXIT_OK
from benchmarks.__main__ import main
from benchmarks.load.open_loop import TimedReply, poisson_arrivals
from benchmarks.load.stages import LoadStage, is_rising, percentile


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model")
    write_tiny_model(path, seed=0)
    return path


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    """Three edits with one valid merge each, which the model is still asked for."""
    lines = []
    for number in range(3):
        lines.append(
            json.dumps(
                {
                    "id": str(number),
                    "path": "a.py",
                    "original": f"import os\n\n\ndef first_{number}():\n    return 1\n",
                    "update": f"# ... existing code ...\ndef first_{number}():\n    return 2\n",
                    "expected": "",
                }
            )
        )
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join(lines))
    return path


@pytest.fixture
def oracle(model_dir: Path) -> OracleService:
    return OracleService(model_dir, max_waiting=2, max_running=2)


@pytest.fixture
def url(oracle: OracleService) -> Iterator[str]:
    with serving(oracle.service) as address:
        yield address


def _stage(mode: str, rate: float, goodput: float) -> LoadStage:
    replies = [TimedReply("answered", 1.0)] * round(10 * goodput)
    return LoadStage.of(mode, rate, replies, seconds=10.0)


def test_every_mode_is_measured_at_every_rate_and_a_second_run_has_nothing_to_do(
    url: str, cases: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, plot = tmp_path / "stages.jsonl", tmp_path / "load.png"
    command = ["load", "--url", url, "--cases", str(cases), "--rates", "4,20"]
    command += ["--seconds", "0.4", "--constraint", "merge", "--k", "8", "--out", str(out)]
    assert main([*command, "--plot", str(plot), "--json"]) == EXIT_OK
    report = json.loads(capsys.readouterr().out)
    stages = {(stage["mode"], stage["rate"]): stage for stage in report["stages"]}
    assert set(stages) == {(mode, rate) for mode in ("default", "k=8", "off") for rate in (4, 20)}
    assert [mode for mode, _ in stages] == ["default", "k=8", "off", "k=8", "off", "default"]
    for (_, rate), stage in stages.items():
        assert stage["sent"] == len(poisson_arrivals(rate, seconds=0.4, seed=0))
        assert stage["answered"] + stage["busy"] == stage["sent"]
        assert stage["problems"] == {}
    assert stages["off", 4]["goodput"] == stages["off", 4]["answered"] / 0.4
    assert report["service"]["model"] == "oracle"
    assert report["best"]["default"]["goodput"] > 0
    assert plot.read_bytes().startswith(b"\x89PNG")
    before = out.read_bytes()
    assert main(command) == EXIT_OK
    assert out.read_bytes() == before
    assert main([*command, "--seed", "1"]) == EXIT_ERROR
    assert "seed" in capsys.readouterr().err


def test_seconds_count_from_the_scheduled_arrival_and_a_full_queue_counts_apart(
    oracle: OracleService, url: str, cases: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    oracle.runner.gate.clear()  # the model computes nothing until all have arrived
    opening = threading.Timer(1.5, oracle.runner.gate.set)
    opening.start()
    command = ["load", "--url", url, "--cases", str(cases), "--rates", "40"]
    command += ["--seconds", "0.5", "--constraint", "merge", "--json"]
    assert main(command) == EXIT_OK
    opening.join()
    first = json.loads(capsys.readouterr().out)["stages"][0]
    assert first["mode"] == "default"
    assert first["busy"] == first["sent"] - first["answered"] > 0
    assert first["answered"] >= 4, "two may run and two may wait"
    assert first["p50_s"] > 0.9, "the wait belongs to the latency of those who waited"


def test_answers_after_the_deadline_are_late(
    oracle: OracleService, url: str, cases: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    oracle.runner.gate.clear()
    opening = threading.Timer(1.0, oracle.runner.gate.set)
    opening.start()
    command = ["load", "--url", url, "--cases", str(cases), "--rates", "10"]
    command += ["--seconds", "0.2", "--deadline-s", "0.5", "--constraint", "merge", "--json"]
    assert main(command) == EXIT_OK
    opening.join()
    first = json.loads(capsys.readouterr().out)["stages"][0]
    assert first["late"] >= 1
    assert first["goodput"] == 0


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--url", "localhost:1"], "no http or https address"),
        (["--url", "http://127.0.0.1:9"], "did not answer"),
        (["--url", "http://127.0.0.1:9", "--rates", "4,2"], "give rising rates"),
        (["--url", "http://127.0.0.1:9", "--rates", "fast"], "or auto"),
        (["--url", "http://127.0.0.1:9", "--rates", "0,1"], "above 0"),
        (["--url", "http://127.0.0.1:9", "--k", "0"], "from 1 to 256"),
        (["--url", "http://127.0.0.1:9", "--seconds", "0"], "up to 3600"),
        (["--url", "http://127.0.0.1:9", "--plot", "/no/folder/x.png"], "no place for a picture"),
        (["--url", "http://127.0.0.1:9", "--cases", "/no/cases"], "cannot be read"),
    ],
)
def test_bad_options_are_refused_with_a_remedy(
    flags: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["load", *flags]) == EXIT_ERROR
    assert message in capsys.readouterr().err


def test_arrivals_are_a_poisson_process_that_a_seed_repeats() -> None:
    arrivals = poisson_arrivals(50.0, seconds=100.0, seed=3)
    assert arrivals == poisson_arrivals(50.0, seconds=100.0, seed=3)
    assert arrivals != poisson_arrivals(50.0, seconds=100.0, seed=4)
    assert arrivals == sorted(arrivals)
    assert arrivals[-1] < 100.0
    gaps = [after - before for before, after in pairwise(arrivals)]
    assert statistics.mean(gaps) == pytest.approx(0.02, rel=0.05)
    assert statistics.stdev(gaps) == pytest.approx(0.02, rel=0.1), "as spread as it is long"
    assert poisson_arrivals(0.001, seconds=0.1, seed=0) == [0.0]


def test_rates_rise_while_any_mode_gains() -> None:
    stages = [_stage("default", 1.0, 1.0), _stage("off", 1.0, 0.9)]
    assert is_rising(stages)
    stages += [_stage("default", 2.0, 1.0), _stage("off", 2.0, 1.2)]
    assert is_rising(stages)
    stages += [_stage("default", 4.0, 1.0), _stage("off", 4.0, 1.2)]
    assert not is_rising(stages)


def test_a_percentile_is_a_value_that_was_measured() -> None:
    values = [float(value) for value in range(1, 101)]
    assert [percentile(values, share) for share in (0.5, 0.9, 0.99)] == [50.0, 90.0, 99.0]
    assert percentile([2.0, 3.0], 0.5) == 2.0
    assert percentile([], 0.5) is None
