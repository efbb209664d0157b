"""Names everything that must be equal for processes to share keys and values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import xxhash

from batching.config import CachePayload, Device, Dtype

# Raise it with every change to how keys and values are computed or laid out.
COMPUTE_VERSION = 3
_READ_BYTES = 1 << 24


def kv_namespace(
    model_path: Path,
    *,
    dtype: Dtype,
    device: Device,
    computed_by: Mapping[str, str],
    block_size: int,
    chunk_tokens: int,
    payload: CachePayload,
) -> bytes:
    """A text of model files, compute configuration and layout.

    `computed_by`: the libraries and instructions that compute, as others give other bits.
    Every file that can change a key or a value is read whole: weights, adapter settings, rope and
    quantisation in config.json, and the tokenizer.
    """
    files = {
        path.name: _digest_file(path)
        for path in sorted(model_path.iterdir())
        if path.suffix in (".json", ".safetensors")
    }
    return json.dumps(
        {
            "compute_version": COMPUTE_VERSION,
            "files": files,
            "dtype": dtype,
            "device": device,
            "computed_by": dict(computed_by),
            "block_size": block_size,
            "chunk_tokens": chunk_tokens,
            "payload": payload,
        },
        sort_keys=True,
    ).encode()


def _digest_file(path: Path) -> str:
    digest = xxhash.xxh3_128()
    with path.open("rb") as stream:
        while content := stream.read(_READ_BYTES):
            digest.update(content)
    return digest.hexdigest()
