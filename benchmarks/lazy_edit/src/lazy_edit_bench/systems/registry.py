"""Every system by name."""

from __future__ import annotations

from pathlib import Path

from lazy_edit_bench.systems.commands import COMMAND_LINES, PatchCommand
from lazy_edit_bench.systems.degenerate import Degenerate
from lazy_edit_bench.systems.endpoints import ENDPOINTS, ApplyService, Endpoint, HttpSystem
from lazy_edit_bench.systems.exact_replace import ExactReplace
from lazy_edit_bench.systems.system import System
from lazy_edit_bench.systems.workers import LIBRARIES, Worker
from lazy_edit_bench.task import BenchError

DEGENERATE = ("do-nothing", "append", "random-place", "always-ask", "always-refuse")
COMMANDS = tuple(COMMAND_LINES)
NAMES = (*DEGENERATE, "exact-replace", *COMMANDS, *LIBRARIES, *ENDPOINTS)


def open_system(name: str, *, folder: Path, endpoint: Endpoint | None = None) -> System:
    """Start a system. Raises BenchError for an unknown name or what is not installed."""
    if name in DEGENERATE:
        return Degenerate(name)
    if name == "exact-replace":
        return ExactReplace()
    if name in COMMANDS:
        return PatchCommand(name)
    if name in LIBRARIES:
        return Worker(name, folder)
    if name in ENDPOINTS:
        if endpoint is None:
            raise BenchError(f"{name} is a service: say where with --url")
        if name == "apply-service":
            return ApplyService(endpoint)
        return HttpSystem(name, endpoint)
    raise BenchError(f"no system {name!r}: use one of {', '.join(NAMES)}")
