"""A tiny corpus of packages, given as files, and what the tiny model says about it."""

from __future__ import annotations

import random
import zipfile
from pathlib import Path

import pytest

from training.drafters.__main__ import main
from training.drafters.documents import part_of

NUM_TRAIN, NUM_HELD_OUT = 3, 2
NUM_VOCABULARY = 100


@pytest.fixture(scope="session")
def corpus_arguments(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A list of packages and the folder with their releases, as arguments of `collect`."""
    root = tmp_path_factory.mktemp("corpus")
    names = [f"package{number}" for number in range(50)]
    chosen = [name for name in names if part_of(name) == "train"][:NUM_TRAIN]
    chosen += [name for name in names if part_of(name) == "held_out"][:NUM_HELD_OUT]
    entries = []
    for name in chosen:
        entries.append(
            f'[[package]]\nregistry = "wheel"\nname = "{name}"\n'
            'licence = "MIT"\nversions = ["0.9", "1.0"]\n'
        )
        folder = root / "releases" / "wheel" / name / "1.0"
        folder.mkdir(parents=True)
        with zipfile.ZipFile(folder / f"{name}.whl", "w") as wheel:
            for number in range(2):
                wheel.writestr(f"{name}/module{number}.py", _source(f"{name}{number}"))
    (root / "packages.toml").write_text("\n".join(entries), encoding="utf-8")
    return ["--packages", str(root / "packages.toml"), "--releases", str(root / "releases")]


def _source(seed: str) -> str:
    rng = random.Random(seed)
    names = ["value", "count", "total", "index"]
    lines = [f"{rng.choice(names)} = {rng.choice(names)} + {rng.randrange(9)}" for _ in range(20)]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="session")
def collect_arguments(tiny_model_dir: Path, corpus_arguments: list[str]) -> list[str]:
    """All arguments of `collect` but the folder and the number of tokens."""
    settings = ["--dtype", "float32", "--threads", "1", "--document-tokens", "48"]
    return ["collect", "--model", str(tiny_model_dir), *settings, *corpus_arguments]


@pytest.fixture(scope="session")
def features_dir(tmp_path_factory: pytest.TempPathFactory, collect_arguments: list[str]) -> Path:
    """Everything that the tiny corpus gives."""
    path = tmp_path_factory.mktemp("features")
    assert main([*collect_arguments, "--out", str(path)]) == 0
    return path
