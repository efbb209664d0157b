"""Variables that torch and its libraries read when they are loaded. Needs no torch."""

from __future__ import annotations

from collections.abc import MutableMapping

# OpenMP's threads spin while they wait, by default for milliseconds. Beside another busy process
# they keep each other from running, and a step takes twenty times as long.
_OPENMP_SPIN_COUNT = "1000"
# oneDNN keeps what it has compiled for up to 1,024 shapes of products, twice, and a step has a
# shape of its own for each number of rows: hundreds of megabytes over a day.
_PRIMITIVE_CACHE_CAPACITY = "64"
_DEFAULTS = {
    "GOMP_SPINCOUNT": _OPENMP_SPIN_COUNT,
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": _PRIMITIVE_CACHE_CAPACITY,
    "LRU_CACHE_CAPACITY": _PRIMITIVE_CACHE_CAPACITY,
}


def set_torch_defaults(environment: MutableMapping[str, str]) -> None:
    """Set what is not set, for this process and those that it starts; before torch is loaded."""
    for name, value in _DEFAULTS.items():
        environment.setdefault(name, value)
