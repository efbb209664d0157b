"""Work for a text worker that shows what becomes of it: it fails, dies, waits, or tells."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from apply_service.errors import FileTooLargeError

WAIT_S = 60.0


def refuse() -> None:
    """Find a limit passed."""
    raise FileTooLargeError("the original has 7 bytes", value=7, limit=5, remedy="send less")


def die() -> None:
    """End as the kernel ends a process when memory is short."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_once(mark: Path) -> int:
    """End the first process that tries, and tell the id of the second."""
    if not mark.exists():
        mark.touch()
        die()
    return os.getpid()


def wait_after(mark: Path) -> None:
    """Say that it has begun, and go on for longer than any test; not so the second time."""
    if not mark.exists():
        mark.write_text(str(os.getpid()))
        time.sleep(WAIT_S)


def process_id() -> int:
    """Where it is done."""
    return os.getpid()


def module_names() -> list[str]:
    """What its process has imported."""
    return sorted(sys.modules)


def make_mistake() -> None:
    """Fail in a way that nobody foresaw."""
    raise ZeroDivisionError("a mistake")
