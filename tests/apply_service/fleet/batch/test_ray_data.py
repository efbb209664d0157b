"""A batch on a Ray cluster whose workers are killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks.fleet.ray_cluster import RayCluster

pytestmark = [pytest.mark.fleet, pytest.mark.timeout(400)]

NUM_EDITS = 2000
SLICE = 40
LIMIT_S = 300.0
LOOK_S = 0.1


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "edits.jsonl"
    with path.open("w") as stream:
        for number in range(NUM_EDITS):
            row = {
                "id": f"edit-{number}",
                "path": f"file_{number % 40}.py",
                "original": f"def f():\n    return {number}\n\n\ndef g():\n    return 'g'\n",
                "update": f"<<<<<<< SEARCH\n    return {number}\n=======\n    return -1\n"
                ">>>>>>> REPLACE\n",
            }
            stream.write(json.dumps(row) + "\n")
    return path


def batch(
    source: Path, out: Path, *flags: str, environment: Mapping[str, str] = os.environ
) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "apply_service", "batch", str(source), "--out", str(out)]
    own = ["--slice", str(SLICE), "--text-workers", "1", "--log-level", "warning"]
    return subprocess.Popen(
        [*command, *own, *flags], stdout=subprocess.PIPE, text=True, env=dict(environment)
    )


def test_two_deaths_change_nothing(ray_node: RayCluster, source: Path, tmp_path: Path) -> None:
    calm = batch(source, tmp_path / "calm")
    out, parts = tmp_path / "killed", tmp_path / "killed" / "parts"
    environment = {**ray_node.environment, "RAY_ADDRESS": ray_node.address}
    killed = batch(source, out, "--on", "ray", "--pool", "2", environment=environment)
    num_slices = NUM_EDITS // SLICE
    deadline = time.monotonic() + LIMIT_S
    victims: list[int] = []
    for share in (0.2, 0.5):
        while len(list(parts.glob("*.jsonl"))) < share * num_slices:
            assert killed.poll() is None, killed.communicate()
            assert time.monotonic() < deadline
            time.sleep(LOOK_S)
        while not (actors := set(ray_node.workers("MapBatches")) - set(victims)):
            time.sleep(LOOK_S)
        victims.append(min(actors))
        os.kill(victims[-1], signal.SIGKILL)

    shown, _ = killed.communicate(timeout=LIMIT_S)
    calm.communicate(timeout=LIMIT_S)
    assert (killed.returncode, calm.returncode) == (0, 0), shown
    assert len(set(victims)) == 2
    results = (out / "results.jsonl").read_bytes()
    assert results == (tmp_path / "calm" / "results.jsonl").read_bytes()
    ids = [json.loads(line)["id"] for line in results.splitlines()]
    assert ids == [f"edit-{number}" for number in range(NUM_EDITS)]
