"""Fixtures that many tests share: a tiny random model with a byte-level tokenizer.

Hypothesis tries the same examples in every run and gives each the time that it takes;
`pytest --hypothesis-profile explore` tries others.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import settings

# Read when triton is first imported, which transformers does: without a GPU its kernels are run by
# its interpreter.
if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")

from serve_process import serve_process, wait_until_ready
from tiny_model import write_tiny_model

# Torch would keep what it made for each of 1,024 shapes, which looks like a leak.
os.environ.setdefault("LRU_CACHE_CAPACITY", "16")
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "16")

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", print_blob=True, deadline=None)
settings.load_profile("repeatable")


@pytest.fixture(scope="session", autouse=True)
def _single_thread() -> None:
    """Tiny tensors lose more to threads than they gain."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def _state_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What commands remember of their writes is nothing to the user who runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def tiny_model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random two-layer Llama with grouped-query attention and a byte-level tokenizer."""
    path = tmp_path_factory.mktemp("tiny-model")
    write_tiny_model(path, seed=0)
    return path


@pytest.fixture(scope="session")
def embedded_url() -> Iterator[str]:
    """A server as `apply-service serve` starts it: a process with the embedded model, no settings.

    It takes many seconds to start, so that the tests which leave it as it was share it.
    """
    with serve_process("--port", "0") as (_server, url):
        wait_until_ready(url)
        yield url
