"""Jobs for a text worker that fail, die, wait, or report."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from apply_service.apply.conclusion import try_conclude_alone
from apply_service.apply.edit_request import EditRequest
from apply_service.apply.errors import FileTooLargeError
from apply_service.apply.outcome import Outcome
from apply_service.apply.planning.edit_plan import EditPlan, plan_edit
from apply_service.apply.planning.text_worker import MAX_MEMORY_BYTES

WAIT_S = 60.0
ENDLESS = "endless"


def refuse() -> None:
    """Raise the error of a passed limit."""
    raise FileTooLargeError("the original has 7 bytes", value=7, limit=5, remedy="send less")


def die() -> None:
    """Die as a process does that the kernel ends when memory is short."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_once(mark: Path) -> int:
    """Kill the first process that tries, and return the id of the second."""
    if not mark.exists():
        mark.touch()
        die()
    return os.getpid()


def wait_after(mark: Path) -> None:
    """Report the start, and run longer than any test; return at once the second time."""
    if not mark.exists():
        mark.write_text(str(os.getpid()))
        time.sleep(WAIT_S)


def spin_until(mark: Path, begun: Path) -> int:
    """Report the process, and compute until a mark exists."""
    begun.mkdir(exist_ok=True)
    (begun / str(os.getpid())).touch()
    while not mark.exists():
        pass
    return os.getpid()


def wait_until(mark: Path, begun: Path) -> int:
    """Report the process, and wait without computing until a mark exists."""
    begun.mkdir(exist_ok=True)
    (begun / str(os.getpid())).touch()
    while not mark.exists():
        time.sleep(0.01)
    return os.getpid()


def plan_or_spin(begun: Path, edit: EditRequest, **options: Any) -> EditPlan:
    """Plan an edit, unless its update says that it is endless."""
    if ENDLESS in edit.update:
        spin_until(begun / "never", begun)
    return plan_edit(edit, **options)


def conclude_or_spin(begun: Path, plan: EditPlan) -> Outcome | None:
    """Conclude a plan alone, unless its update says that it is endless."""
    if ENDLESS in plan.edit.update:
        spin_until(begun / "never", begun)
    return try_conclude_alone(plan)


def take_memory() -> int:
    """Ask for more memory than a worker may have."""
    return len(bytearray(MAX_MEMORY_BYTES))


def note(name: str, journal: Path) -> None:
    """Write down that the job was done."""
    with journal.open("a") as lines:
        lines.write(f"{name}\n")


def process_id() -> int:
    """The id of the process that does the job."""
    return os.getpid()


def module_names() -> list[str]:
    """The names of the modules that the process has imported."""
    return sorted(sys.modules)


def make_mistake() -> None:
    """Fail in a way that nobody foresaw."""
    raise ZeroDivisionError("a mistake")
