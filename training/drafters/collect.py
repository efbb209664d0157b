"""Runs the target over documents and stores its choices and last hidden rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

from apply_service.models.manifest import file_sha256
from batching.model.loading import compute_logits
from kernels.linear import use_onednn_linear
from training.drafters.documents import Cutting, Document, part_of, read_documents
from training.drafters.features import (
    MODEL_CONFIG_NAME,
    TARGET_NAME,
    Passage,
    ShardWriter,
    keep_settings,
)
from training.releases import Package


class Target:
    """The model whose words are drafted, on the CPU."""

    def __init__(self, path: Path, *, dtype: torch.dtype) -> None:
        self._path = path
        self._model: Any = AutoModelForCausalLM.from_pretrained(path, dtype=dtype).eval()

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's own."""
        return Tokenizer.from_file(str(self._path / "tokenizer.json"))

    def write_parts(self, folder: Path) -> None:
        """Store its configuration, embeddings and head, which training and judging read."""
        embeddings = self._model.get_input_embeddings().weight.detach()
        head = self._model.get_output_embeddings().weight.detach()
        parts = {"embed_tokens.weight": embeddings}
        if head.data_ptr() != embeddings.data_ptr():
            parts["lm_head.weight"] = head
        save_file(parts, folder / TARGET_NAME)
        self._model.config.to_json_file(folder / MODEL_CONFIG_NAME, use_diff=False)

    def use_fast_layers(self) -> None:
        """Pack the weights as the engine does; `write_parts` comes before."""
        use_onednn_linear(self._model)

    @torch.inference_mode()
    def read(self, token_ids: Sequence[int]) -> Passage:
        """What the model says behind each token."""
        text = torch.tensor(token_ids)
        rows = self._model.model(input_ids=text[None], use_cache=False).last_hidden_state[0]
        choice_ids = compute_logits(self._model, rows).argmax(dim=-1)
        return Passage(text, choice_ids, rows.to(torch.float16))


def collect(
    target: Target, documents: Iterable[Document], writer: ShardWriter, *, max_tokens: int
) -> None:
    """Read documents that are not stored yet, until so many tokens are."""
    for document in documents:
        if writer.num_tokens >= max_tokens:
            break
        if document.id not in writer.document_ids:
            writer.add(document, target.read(document.token_ids))
    writer.flush()


def collect_parts(
    model: Path,
    packages: Sequence[Package],
    *,
    out: Path,
    releases: Path,
    max_tokens: Mapping[str, int],
    cutting: Cutting,
    dtype: torch.dtype,
) -> None:
    """Fill the parts of a folder; what is stored already is kept.

    max_tokens: of each part; its last document may go beyond

    Raises FeaturesError if the folder holds features of another model, list or cutting.
    """
    named = "\n".join(sorted(f"{one.name} {one.versions[-1]}" for one in packages))
    settings = {
        "model_sha256": [file_sha256(path) for path in sorted(model.glob("*.safetensors"))],
        "dtype": str(dtype).removeprefix("torch."),
        "packages_sha256": hashlib.sha256(named.encode()).hexdigest(),
        **asdict(cutting),
    }
    keep_settings(out, settings)
    target = Target(model, dtype=dtype)
    target.write_parts(out)
    target.use_fast_layers()
    for part, limit in max_tokens.items():
        writer = ShardWriter(out / part)
        chosen = [package for package in packages if part_of(package.name) == part]
        documents = read_documents(chosen, releases, tokenizer=target.tokenizer, cutting=cutting)
        collect(target, documents, writer, max_tokens=limit)
        num_documents = len(writer.document_ids)
        print(f"{part}: {writer.num_tokens} tokens in {num_documents} documents", flush=True)
