"""The run over instruction sets: says what it runs, leaves out what is not there, and can fail."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernels.instruction_set import processor_levels

ROOT = Path(__file__).parents[1]
LEAN = "tests/kernels/test_row_bits.py::test_linear_layers_in_any_number"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A run of levels; pytest looks for no plugins but the one that it is told to use."""
    plugins = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "pytest_timeout"}
    return subprocess.run(
        [sys.executable, "tests/isa_levels.py", *arguments],
        cwd=ROOT,
        env={**os.environ, **plugins, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


@pytest.mark.skipif("AVX2" not in processor_levels(), reason="the processor has no AVX2")
def test_a_level_runs_with_its_cap() -> None:
    done = run("--only", "AVX2", LEAN)
    assert done.returncode == 0, done.stdout
    assert "processor flags:" in done.stdout
    assert "AVX2: passed" in done.stdout


def test_a_level_that_fails_fails_the_run(tmp_path: Path) -> None:
    failing = tmp_path / "test_caps.py"
    failing.write_text(
        "import os\ndef test_cap():\n    assert 'ONEDNN_MAX_CPU_ISA' in os.environ\n"
    )
    done = run("--only", "DEFAULT", str(failing))
    assert done.returncode == 1
    assert "DEFAULT: FAILED" in done.stdout


@pytest.mark.skipif("AVX512_CORE_AMX" in processor_levels(), reason="the processor has AMX")
def test_in_the_place_of_a_level_that_is_lacking_the_slower_ways_are_forced(tmp_path: Path) -> None:
    forced = tmp_path / "test_forced.py"
    forced.write_text(
        "import os\ndef test_forced():\n"
        "    assert os.environ['APPLY_SERVICE_ROW_GROUPING'] in ('tiles', 'single')\n"
    )
    done = run("--only", "AVX512_CORE_AMX", str(forced))
    assert done.returncode == 0, done.stdout
    assert "AVX512_CORE_AMX: not run here" in done.stdout
    assert "rows by single, in the place of AVX512_CORE_AMX: passed" in done.stdout
