"""Memory that nobody uses any more goes back to the system once a minute."""

from __future__ import annotations

import ctypes
import gc
import threading

_PERIOD_S = 60.0


def give_back_free_memory() -> bool:
    """Collect cycles and give free pages back; only glibc can (malloc_trim(3)), True if it did.

    A request that failed or was left is a cycle of task, exception and frame. Python looks for
    cycles after so many objects, however large the bodies are that they hold. Bodies come and go
    in many threads, each leaves holes in the heap of its thread, and glibc keeps what is free
    below the top of a heap until it is asked.
    """
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return trim is not None and bool(trim(0))


def keep_giving_back(*, every_s: float = _PERIOD_S) -> threading.Thread:
    """Start a daemon thread that gives free memory back every so many seconds."""
    thread = threading.Thread(
        target=_give_back_for_ever, args=(every_s,), name="free-memory", daemon=True
    )
    thread.start()
    return thread


def _give_back_for_ever(every_s: float) -> None:
    pause = threading.Event()
    while not pause.wait(every_s):
        give_back_free_memory()
