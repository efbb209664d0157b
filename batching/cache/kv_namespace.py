"""Names everything that must be equal for processes to share keys and values."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import xxhash

from batching.config import CachePayload, Device, Dtype

# Raise it with every change to how keys and values are computed or laid out.
COMPUTE_VERSION = 3
_READ_BYTES = 1 << 24
_WEIGHT_SUFFIXES = (".json", ".safetensors", ".pt", ".bin")


def kv_namespace(
    model_path: Path,
    *,
    dtype: Dtype,
    device: Device,
    computed_by: Mapping[str, str],
    block_size: int,
    chunk_tokens: int,
    payload: CachePayload,
    drafter_paths: Sequence[Path] = (),
) -> bytes:
    """A text of model files, compute configuration and layout.

    `drafter_paths`: the folders of drafters whose keys and values are kept beside the model's.

    `computed_by`: the libraries and instructions that compute, as others give other bits.
    Every file that can change a key or a value is read whole: weights, adapter settings, rope and
    quantisation in config.json, and the tokenizer.
    """
    return json.dumps(
        {
            "compute_version": COMPUTE_VERSION,
            "files": _digests(model_path, (".json", ".safetensors")),
            **(
                {"drafters": [_digests(path, _WEIGHT_SUFFIXES) for path in drafter_paths]}
                if drafter_paths
                else {}
            ),
            "dtype": dtype,
            "device": device,
            "computed_by": dict(computed_by),
            "block_size": block_size,
            "chunk_tokens": chunk_tokens,
            "payload": payload,
        },
        sort_keys=True,
    ).encode()


def _digests(folder: Path, suffixes: Collection[str]) -> dict[str, str]:
    files = (path for path in sorted(folder.iterdir()) if path.suffix in suffixes)
    return {path.name: _digest_file(path) for path in files}


def _digest_file(path: Path) -> str:
    digest = xxhash.xxh3_128()
    with path.open("rb") as stream:
        while content := stream.read(_READ_BYTES):
            digest.update(content)
    return digest.hexdigest()
