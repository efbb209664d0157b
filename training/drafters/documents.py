"""Cuts the source files of pinned packages into documents, in an order that a seed determines."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tokenizers import Tokenizer

from training.corpus import split_of
from training.releases import Package, Release, fetch_releases
from training.source_files import read_sources

MIN_TOKENS = 32
# Packages are fetched so many at a time: no more than the wanted tokens need.
_PACKAGES_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Document:
    """Consecutive tokens of one file. `id` names them across runs."""

    id: str
    token_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cutting:
    """How long documents are, and how many tokens one package gives at most."""

    seed: int = 0
    max_tokens: int = 1024
    tokens_per_package: int = 16_384


def part_of(package: str) -> str:
    """`train` or `held_out`; all documents of a package are of one part."""
    return "train" if split_of(package) == "train" else "held_out"


def read_documents(
    packages: Sequence[Package], releases: Path, *, tokenizer: Tokenizer, cutting: Cutting
) -> Iterator[Document]:
    """The documents of the packages' newest releases, which are fetched as they are needed."""
    newest = [replace(package, versions=package.versions[-1:]) for package in packages]
    newest.sort(key=lambda package: package.name)
    random.Random(f"{cutting.seed}:packages").shuffle(newest)
    for start in range(0, len(newest), _PACKAGES_AT_ONCE):
        for release in fetch_releases(newest[start : start + _PACKAGES_AT_ONCE], releases):
            yield from _documents_of(release, tokenizer, cutting)


def _documents_of(release: Release, tokenizer: Tokenizer, cutting: Cutting) -> Iterator[Document]:
    if release.archive is None:
        return
    sources = read_sources(release.archive)
    name = f"{release.package.name}@{release.version}"
    paths = sorted(sources)
    random.Random(f"{cutting.seed}:{name}").shuffle(paths)
    room = cutting.tokens_per_package
    for path in paths:
        token_ids = tokenizer.encode(sources[path], add_special_tokens=False).ids
        for start in range(0, len(token_ids), cutting.max_tokens):
            chosen = tuple(token_ids[start : start + min(cutting.max_tokens, room)])
            if len(chosen) >= MIN_TOKENS:
                room -= len(chosen)
                yield Document(f"{name}:{path}:{start}", chosen)
            if room < MIN_TOKENS:
                return
