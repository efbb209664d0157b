"""llama.cpp as a rival: the same tokens from an exported model, and a clear word without it.

`APPLY_TEST_LLAMA_PYTHON` names an interpreter that has llama-cpp-python, if this one has not.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import msgspec
import pytest

from apply_service.evaluate.worker_process import WorkerEndedError
from benchmarks.speed.contenders import LlamaMissingError, check_llama, start_llama
from benchmarks.speed.gguf_export import export_gguf
from benchmarks.speed.run import RivalRequest, WorkerFacts
from benchmarks.speed.transformers_baseline import TransformersBaseline

LLAMA_PYTHON = Path(os.environ.get("APPLY_TEST_LLAMA_PYTHON", sys.executable))
HAS_LLAMA = "APPLY_TEST_LLAMA_PYTHON" in os.environ or importlib.util.find_spec("llama_cpp")
needs_llama = pytest.mark.skipif(not HAS_LLAMA, reason="llama-cpp-python is not installed")

REQUESTS = [
    RivalRequest(prompt_token_ids=tuple(prompt), max_tokens=24, stop_token_ids=(2,))
    for prompt in (range(3, 40), [9, 8, 7] * 12, range(3, 40))
]


def settings_of(path: Path, num_pred_tokens: int) -> dict[str, object]:
    return {
        "path": str(path),
        "dtype": "F32",
        "num_context_tokens": 512,
        "num_threads": 1,
        "num_pred_tokens": num_pred_tokens,
    }


@needs_llama
@pytest.mark.parametrize("num_pred_tokens", [0, 10])
def test_tokens_are_those_of_transformers(
    tiny_model_dir: Path, tmp_path: Path, num_pred_tokens: int
) -> None:
    check_llama(LLAMA_PYTHON)
    export_gguf(tiny_model_dir, tmp_path / "model.gguf", dtype="F32")
    baseline = TransformersBaseline(tiny_model_dir)
    expected = [baseline.run(request).token_ids for request in REQUESTS]
    settings = settings_of(tmp_path / "model.gguf", num_pred_tokens)
    with start_llama(settings, LLAMA_PYTHON) as llama:
        facts = msgspec.json.decode(llama.greeting, type=WorkerFacts)
        runs = [llama.run(request) for request in REQUESTS]
        assert (llama.peak_memory_bytes or 0) > 1 << 20
    assert facts.dtype == "F32"
    assert facts.versions["llama-cpp-python"]
    assert [run.token_ids for run in runs] == expected
    for run in runs:
        assert run.first_token_s is not None
        assert 0 < run.first_token_s < run.seconds


@needs_llama
def test_a_file_that_is_no_model_is_said(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(b"GGUF and nothing more")
    settings = settings_of(tmp_path / "model.gguf", 0)
    with pytest.raises(WorkerEndedError, match="exit code 1"), start_llama(settings, LLAMA_PYTHON):
        pass


def test_an_interpreter_without_it_is_told_what_to_do(tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -E "$@"\n')
    bare.chmod(0o755)
    with pytest.raises(LlamaMissingError, match=r"No module named 'llama_cpp'.*-m pip install"):
        check_llama(bare)


def test_an_interpreter_that_is_none_is_said(tmp_path: Path) -> None:
    with pytest.raises(LlamaMissingError, match=r"cannot be run .*--llama-python"):
        check_llama(tmp_path / "python")
