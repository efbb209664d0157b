"""The Triton kernels on the CPU, in Triton's interpreter; skipped where that is not at hand."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec

import pytest
import torch

collect_ignore_glob: list[str] = []
if find_spec("triton") is None or os.environ.get("TRITON_INTERPRET") != "1":
    collect_ignore_glob.append("test_*.py")


@pytest.fixture(autouse=True)
def _poisoned_memory() -> Iterator[None]:
    """New tensors hold NaN, or the largest integer, until a kernel has written them."""
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)
