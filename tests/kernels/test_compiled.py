"""The Triton kernels compile for GPUs that are not there; what they compute is proved elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

TESTS_DIR = Path(__file__).parents[1]
# Bytes of shared memory that a block of threads may use.
MAX_SHARED = {80: 163 << 10, 90: 227 << 10}

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed")


@pytest.mark.timeout(400)  # ten seconds of an idle processor
@pytest.mark.parametrize("arch", [pytest.param(80, marks=pytest.mark.slow), 90])
def test_kernels_compile(arch: int, tmp_path: Path) -> None:
    environment = dict(os.environ, TRITON_CACHE_DIR=str(tmp_path), TRITON_INTERPRET="0")
    environment["PYTHONPATH"] = os.pathsep.join([str(TESTS_DIR.parent), str(TESTS_DIR)])
    run = subprocess.run(
        [sys.executable, str(TESTS_DIR / "helpers" / "engine" / "kernel_compiler.py"), str(arch)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    report = json.loads(run.stdout)
    assert {kernel["name"] for kernel in report} == {
        "_attend",
        "_merge_splits",
        "_store_kv",
        "_rotate",
        "_rms_norm",
        "_silu_mul",
        "_find_best_of_blocks",
        "_find_best_of_products",
        "_reduce_blocks",
        "_count_accepted",
        "_draw_tokens",
    }
    for kernel in report:
        assert kernel["shared"] <= MAX_SHARED[arch], kernel
    products = [k for k in report if k["name"] in ("_attend", "_find_best_of_products")]
    assert all(kernel["num_matrix_instructions"] for kernel in products)
    attention = [kernel for kernel in products if kernel["name"] == "_attend"]
    cuts = {
        (kernel["constants"]["BLOCK_M"], kernel["constants"]["IS_PARALLEL"]) for kernel in attention
    }
    assert cuts == {(16, True), (128, True), (128, False)}
