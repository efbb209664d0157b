"""What tells models apart in caches, answers and between processes. Needs no torch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from batching.config import Dtype

_SAMPLED_BYTES = 1 << 16
_NUM_SAMPLES = 64


def fingerprint_model(path: Path) -> str:
    """A hex digest that differs between models: small files whole, weights by size and samples.

    It is no integrity check.
    """
    digest = hashlib.sha256()
    for file in sorted(path.iterdir()):
        if file.suffix not in (".json", ".safetensors"):
            continue
        size = file.stat().st_size
        digest.update(f"{file.name}\0{size}\0".encode())
        with file.open("rb") as stream:
            for offset in _sample_offsets(size):
                stream.seek(offset)
                digest.update(stream.read(_SAMPLED_BYTES))
    return digest.hexdigest()


def fingerprint_as(fingerprint: str, dtype: Dtype) -> str:
    """That of a model as it is computed: quantised it is another one, other formats round."""
    if dtype != "int8":
        return fingerprint
    return hashlib.sha256(f"{fingerprint}\0{dtype}".encode()).hexdigest()


def _sample_offsets(size: int) -> Iterable[int]:
    if size <= _SAMPLED_BYTES * _NUM_SAMPLES:
        return range(0, size, _SAMPLED_BYTES)
    return [i * (size - _SAMPLED_BYTES) // (_NUM_SAMPLES - 1) for i in range(_NUM_SAMPLES)]
