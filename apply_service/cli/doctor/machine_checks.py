"""The device that computes, its threads, and the memory that the settings will take."""

from __future__ import annotations

import os
from pathlib import Path

from apply_service.cli.doctor.check import Check, failed, passed, warned
from apply_service.config import Settings, format_size
from apply_service.models.info import ModelDescription
from batching.config import CPU_KV_MEMORY

_MEMORY_INFO = Path("/proc/meminfo")
_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
_CGROUP_USED = Path("/sys/fs/cgroup/memory.current")
# Python, torch and the server themselves.
_RUNTIME_BYTES = 600 << 20
_FLOAT32_BYTES, _HALF_BYTES = 4, 2


def check_device(settings: Settings) -> Check:
    """Check that the device of the settings exists."""
    try:
        import torch
    except (ImportError, OSError) as error:
        remedy = "install torch for this machine, see the Makefile's TORCH_INDEX"
        return failed("device", f"torch cannot be imported: {error}", remedy=remedy)
    if torch.cuda.is_available():
        free_bytes, total_bytes = torch.cuda.mem_get_info()
        name = torch.cuda.get_device_name()
        facts = {"free_bytes": free_bytes, "total_bytes": total_bytes, "cuda": torch.version.cuda}
        if settings.device != "cpu":
            free = f"{_gigabytes(free_bytes)} of {_gigabytes(total_bytes)} free"
            return passed("device", f"{name}, {free}, CUDA {torch.version.cuda}", **facts)
    elif settings.device == "cuda":
        return failed(
            "device",
            "the device is cuda and torch finds no GPU",
            remedy="install a driver and a CUDA build of torch, or set device to auto",
            torch=torch.__version__,
        )
    return _check_cpu(settings, torch.get_num_threads(), torch.backends.cpu.get_cpu_capability())


def check_memory(settings: Settings, model: ModelDescription | None) -> Check:
    """Check that the model and both caches fit into free memory."""
    available = available_memory_bytes()
    if available is None:
        return passed("memory", "how much is free cannot be told on this system")
    model_bytes = 0 if model is None else round(model.size_bytes * number_scale(settings, model))
    kv_memory = kv_memory_of(settings) or 0
    needed = _RUNTIME_BYTES + model_bytes + kv_memory + settings.cache_memory
    text = (
        f"{_gigabytes(available)} available, about {_gigabytes(needed)} needed (model"
        f" {_gigabytes(model_bytes)}, kv_memory {format_size(kv_memory)}, cache_memory"
        f" {format_size(settings.cache_memory)})"
    )
    facts = {"available_bytes": available, "needed_bytes": needed, "model_bytes": model_bytes}
    if needed > available:
        remedy = "lower kv_memory or cache_memory, or free some memory"
        return warned("memory", text, remedy=remedy, **facts)
    return passed("memory", text, **facts)


def kv_memory_of(settings: Settings) -> int | None:
    """Bytes of the KV cache; None if a GPU gives what it has free at the start."""
    if settings.kv_memory is not None:
        return settings.kv_memory
    try:
        from apply_service.models.loading import resolve_device
    except (ImportError, OSError):  # `check_device` says so
        return CPU_KV_MEMORY
    return CPU_KV_MEMORY if resolve_device(settings) == "cpu" else None


def number_scale(settings: Settings, model: ModelDescription) -> float:
    """Bytes of a number as it is computed with, over those of one as it is stored."""
    try:
        from apply_service.models.loading import resolve_device, resolve_dtype
    except (ImportError, OSError):  # `check_device` says so
        dtype: str = settings.dtype
    else:
        dtype = resolve_dtype(settings, resolve_device(settings))
    is_half = dtype in ("bfloat16", "float16")
    stored = _FLOAT32_BYTES if model.dtype == "float32" else _HALF_BYTES
    return (_HALF_BYTES if is_half else _FLOAT32_BYTES) / stored


def available_memory_bytes() -> int | None:
    """Bytes that a new process could use, within its container's limit; None if unknown."""
    free: int | None = None
    try:
        for line in _MEMORY_INFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                free = int(line.split()[1]) * 1024
    except OSError:
        return None
    try:
        limit = int(_CGROUP_LIMIT.read_text()) - int(_CGROUP_USED.read_text())
    except (OSError, ValueError):  # no container, or one without a limit
        return free
    return limit if free is None else min(free, limit)


def _check_cpu(settings: Settings, num_threads: int, capability: str) -> Check:
    threads = settings.threads or num_threads
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    text = f"CPU with {capability}, {threads} threads on {cores} cores"
    facts = {"threads": threads, "cores": cores, "capability": capability}
    if cores is not None and threads > cores:
        remedy = f"set threads to {cores} or less: more of them only get in each other's way"
        return warned("device", text, remedy=remedy, **facts)
    return passed("device", text, **facts)


def _gigabytes(num_bytes: int) -> str:
    return f"{num_bytes / 1e9:.1f} GB"
