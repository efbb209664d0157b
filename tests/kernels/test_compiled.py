"""The Triton kernels compile for GPUs that are not there; what they compute is proved elsewhere."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

# Bytes of shared memory that a block of threads may use.
MAX_SHARED = {80: 163 << 10, 89: 99 << 10, 90: 227 << 10}

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed")


@pytest.mark.timeout(400)  # ten seconds of an idle processor
@pytest.mark.parametrize(
    "arch", [pytest.param(80, marks=pytest.mark.slow), pytest.param(89, marks=pytest.mark.slow), 90]
)
def test_kernels_compile_without_spilling(arch: int) -> None:
    from benchmarks.kernels.command import compile_all

    report = compile_all(arch)
    assert {kernel.name for kernel in report} == {
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
        assert kernel.shared <= MAX_SHARED[arch], kernel
        assert kernel.spilled == 0, kernel
    products = [one for one in report if one.name in ("_attend", "_find_best_of_products")]
    assert all(kernel.num_matrix_instructions for kernel in products)
    cuts = {
        (kernel.constants["HEAD_DIM"], kernel.constants["BLOCK_M"])
        for kernel in products
        if kernel.name == "_attend"
    }
    assert cuts == {(dim, rows) for dim in (64, 128) for rows in (16, 64)}
