"""The fit of a device's constants finds those of a made-up device again."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from batching.step_costs import StepSize
from benchmarks.__main__ import main
from benchmarks.device_model.constants import DEVICES, MODELS, Device, DeviceModel
from benchmarks.device_model.fit import fit_device, read_points

CONTEXT = 2048
SIZES = [(batch, k) for batch in (1, 8, 32, 128) for k in (0, 16, 64)]


def write_report(
    path: Path, device: Device, *, shape: str = "7b", noise: float = 0.0, sizes: Any = SIZES
) -> Path:
    """A report whose steps take what a device would take, more or less."""
    generator = random.Random(0)
    model = DeviceModel(device, MODELS[shape])
    steps = []
    for batch, k in sizes:
        num_rows = batch * (k + 1)
        size = StepSize(num_rows=num_rows, num_plain_rows=0, num_pairs=0, num_requests=batch)
        seconds = model.step_s(size, num_context_tokens=batch * CONTEXT)
        step_ms = 1e3 * seconds * (1 + noise * generator.uniform(-1, 1))
        steps.append({"batch": batch, "k": k, "num_rows": num_rows, "step_ms": step_ms})
    path.write_text(json.dumps({"shape": shape, "context": CONTEXT, "steps": steps, "more": 1}))
    return path


@pytest.mark.parametrize("name", sorted(DEVICES))
@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_known_constants_are_found(tmp_path: Path, name: str, noise: float) -> None:
    device = DEVICES[name]
    paths = [
        write_report(tmp_path / f"{shape}.json", device, shape=shape, noise=noise)
        for shape in MODELS
    ]
    fitted = fit_device(read_points(paths))
    allowed = 1e-6 if noise == 0.0 else 0.06
    assert fitted.bytes_per_s == pytest.approx(device.bytes_per_s, rel=allowed)
    assert fitted.flop_per_s == pytest.approx(device.flop_per_s, rel=allowed)
    assert fitted.launch_s >= 0.0
    if noise == 0.0:
        assert fitted.launch_s == pytest.approx(device.launch_s, rel=1e-3)


def test_a_device_that_nothing_binds_by_operations_keeps_a_bound(tmp_path: Path) -> None:
    path = write_report(
        tmp_path / "a.json", DEVICES["h200"], sizes=[(1, 0), (2, 0), (4, 0), (8, 0)]
    )
    fitted = fit_device(read_points([path]))
    assert fitted.bytes_per_s == pytest.approx(DEVICES["h200"].bytes_per_s, rel=1e-3)
    assert fitted.flop_per_s > 0


def test_predicted_and_measured_stand_side_by_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_report(tmp_path / "a.json", DEVICES["h100"])
    assert main(["device_model", "--fit", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("fitted: 3,350 GB/s, 989 TFLOP/s, 20 µs")
    assert len(lines) == 3 + len(SIZES) + 1
    assert lines[-1] == "mean error 0.0%, largest 0.0%"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no report"),
        ('{"shape": "7b"}', "is no report"),
        ('{"shape": "9b", "context": 1, "steps": []}', "of the shape 9b; take 7b, 1.5b"),
        ('{"shape": "7b", "context": 1, "steps": []}', "too few"),
    ],
)
def test_what_is_no_report_is_refused(
    tmp_path: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    assert main(["device_model", "--fit", str(path)]) == 2
    assert message in capsys.readouterr().err


def test_nothing_to_do_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["device_model"]) == 2
    assert "name case files, or --fit FILE" in capsys.readouterr().err
