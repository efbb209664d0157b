"""Stores what the target says about documents: token ids, its choices and its last hidden rows.

A folder has `settings.json`, `model_config.json`, `target.safetensors` (the target's embeddings and
head) and, for each part, shards of documents.

FeaturesError: features that cannot be read, or that do not fit what is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from training.drafters.documents import Document

PARTS = ("train", "held_out")
SETTINGS_NAME = "settings.json"
MODEL_CONFIG_NAME = "model_config.json"
TARGET_NAME = "target.safetensors"
SHARD_TOKENS = 65_536


class FeaturesError(Exception):
    """Features cannot be written, read or used."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A document and what the target said about it.

    token_ids: [num_tokens] int64
    choice_ids: [num_tokens] int64, the likeliest token behind each
    rows: [num_tokens, hidden_size] float16, the last hidden rows, after the last norm
    """

    token_ids: Tensor
    choice_ids: Tensor
    rows: Tensor

    def __len__(self) -> int:
        return len(self.token_ids)


class ShardWriter:
    """Appends passages to the shards of one part; a shard is there as a whole or not at all."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._waiting: list[tuple[str, Passage]] = []
        stored = FeatureSet(folder)
        self.document_ids = set(stored.document_ids)
        self.num_tokens = stored.num_tokens
        self._num_shards = stored.num_shards

    def add(self, document: Document, passage: Passage) -> None:
        """Take in a document that is not there yet."""
        self._waiting.append((document.id, passage))
        self.document_ids.add(document.id)
        self.num_tokens += len(passage)
        if sum(len(waiting) for _, waiting in self._waiting) >= SHARD_TOKENS:
            self.flush()

    def flush(self) -> None:
        """Write what waits, as a smaller shard."""
        if not self._waiting:
            return
        passages = [passage for _, passage in self._waiting]
        tensors = {
            "token_ids": torch.cat([one.token_ids for one in passages]).int(),
            "choice_ids": torch.cat([one.choice_ids for one in passages]).int(),
            "rows": torch.cat([one.rows for one in passages]),
            "lengths": torch.tensor([len(one) for one in passages], dtype=torch.int32),
        }
        path = self._folder / f"{self._num_shards:05d}.safetensors"
        partial = path.with_name(path.name + ".partial")
        document_ids = json.dumps([document_id for document_id, _ in self._waiting])
        save_file(tensors, partial, metadata={"document_ids": document_ids})
        partial.replace(path)
        self._num_shards += 1
        self._waiting.clear()


class FeatureSet:
    """The passages of one part in the order of their shards, read one at a time."""

    def __init__(self, folder: Path) -> None:
        """Raises FeaturesError for a shard that cannot be read. An empty folder is no error."""
        self.document_ids: list[str] = []
        self._places: list[tuple[Path, int, int]] = []
        paths = sorted(folder.glob("*.safetensors"))
        for path in paths:
            self._read_index(path)
        self.num_shards = len(paths)
        self.num_tokens = sum(end - start for _, start, end in self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, index: int) -> Passage:
        path, start, end = self._places[index]
        with safe_open(path, "pt") as shard:
            token_ids, choice_ids, rows = (
                shard.get_slice(name)[start:end] for name in ("token_ids", "choice_ids", "rows")
            )
        return Passage(token_ids.long(), choice_ids.long(), rows)

    def texts(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Token ids and choices [num_tokens] int64 of each passage, without the rows."""
        for path in sorted({path for path, _, _ in self._places}):
            with safe_open(path, "pt") as shard:
                lengths = shard.get_tensor("lengths").tolist()
                token_ids = shard.get_tensor("token_ids").long().split(lengths)
                yield from zip(
                    token_ids, shard.get_tensor("choice_ids").long().split(lengths), strict=True
                )

    def _read_index(self, path: Path) -> None:
        try:
            with safe_open(path, "pt") as shard:
                lengths = shard.get_tensor("lengths").tolist()
                self.document_ids += json.loads(shard.metadata()["document_ids"])
        except (OSError, SafetensorError, ValueError, TypeError, KeyError) as error:
            raise FeaturesError(
                f"{path} is no shard of features ({error}); remove it and collect again"
            ) from error
        end = 0
        for length in lengths:
            self._places.append((path, end, end + length))
            end += length


def open_part(folder: Path, part: str) -> FeatureSet:
    """The passages of a part. Raises FeaturesError if there are none."""
    features = FeatureSet(folder / part)
    if not len(features):
        raise FeaturesError(
            f"{folder / part} holds no features; run `python -m training.drafters collect`"
        )
    return features


def read_model_config(folder: Path) -> Mapping[str, Any]:
    """The configuration of the target that features are of. Raises FeaturesError."""
    try:
        config: dict[str, Any] = json.loads(
            (folder / MODEL_CONFIG_NAME).read_text(encoding="utf-8")
        )
    except (OSError, ValueError) as error:
        raise FeaturesError(f"{folder} lacks the target ({error}); collect again") from error
    return config


def keep_settings(folder: Path, settings: Mapping[str, object]) -> None:
    """Note how features are made. Raises FeaturesError if the folder has others."""
    path = folder / SETTINGS_NAME
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
        return
    stored = json.loads(path.read_text(encoding="utf-8"))
    for name, value in settings.items():
        if stored.get(name) != value:
            raise FeaturesError(
                f"{folder} was made with {name} {stored.get(name)!r}, and now it is {value!r};"
                " collect into another folder"
            )
