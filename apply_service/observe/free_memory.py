"""Returns memory that a process has freed to the system."""

from __future__ import annotations

import ctypes
import gc
import threading
import time

_PERIOD_S = 60.0
# Parameters of mallopt, numbered as in glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8


def keep_heaps_small() -> bool:
    """Let a process of texts, not of tensors, keep little of what it frees; True if glibc agrees.

    By itself glibc learns from each large text that it frees: the heap of every thread may then
    keep twice as much, up to 64 MB, and `malloc_trim` does not reach the end of those heaps.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is None:
        return False
    options = {_MMAP_THRESHOLD: 256 << 10, _TRIM_THRESHOLD: 1 << 20, _ARENA_MAX: 2}
    accepted = [bool(set_option(*option)) for option in options.items()]
    return all(accepted)


def give_back_free_memory() -> bool:
    """Collect cycles and return free pages to the system; True if glibc's malloc_trim did it.

    A request that fails leaves a cycle of task, exception and frame, and the cycle holds its body.
    Python counts objects, not bytes, before it looks for cycles. glibc keeps the holes that large
    bodies leave in the heaps of many threads until `malloc_trim` is called.
    """
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return trim is not None and bool(trim(0))


def keep_giving_back(*, every_s: float = _PERIOD_S) -> threading.Thread:
    """Start a daemon thread that gives free memory back every `every_s` seconds."""
    thread = threading.Thread(
        target=_give_back_for_ever, args=(every_s,), name="free-memory", daemon=True
    )
    thread.start()
    return thread


def _give_back_for_ever(every_s: float) -> None:
    while True:
        time.sleep(every_s)
        give_back_free_memory()
