"""Describes the machine on which figures were taken."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

from apply_service.version import service_version
from batching.machine_file import processor_name

_PACKAGES = ("torch", "transformers", "tokenizers")


def describe_machine(*, device: str, dtype: str) -> dict[str, Any]:
    """Device, processor, cores, threads of torch, number format and versions, for a report."""
    is_gpu = device.startswith("cuda")
    return {
        "device": torch.cuda.get_device_name(device) if is_gpu else "cpu",
        "processor": processor_name(),
        "cores": num_cores(),
        "threads": torch.get_num_threads(),
        "dtype": dtype,
        "versions": package_versions(),
    }


def package_versions() -> dict[str, str | None]:
    """The versions of this service, of Python and of the packages that do the arithmetic."""
    return {
        "apply-service": service_version(),
        "python": platform.python_version(),
        **{name: package_version(name) for name in _PACKAGES},
    }


def num_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def package_version(name: str) -> str | None:
    """The installed version of a package, None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None
