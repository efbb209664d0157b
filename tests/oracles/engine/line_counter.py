"""Counts executed source lines: a measure of work that does not depend on the machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def count_lines(work: Callable[[], object]) -> int:
    """Number of Python source lines that `work` executes."""
    num_lines = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal num_lines
        num_lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return num_lines
