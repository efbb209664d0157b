"""The speed bench as a command, with the tiny model: all contenders, resumed, and bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from case_files import case_file

from benchmarks.__main__ import main

CASE_FILE = case_file("short_edits")
LLAMA_PYTHON = os.environ.get("APPLY_TEST_LLAMA_PYTHON")
OWN = ["ours", "speculation_off", "transformers_greedy", "prompt_lookup_10", "prompt_lookup_64"]
PEERS = ["default", "llama_f32", "llama_f32_lookup_10", "llama_q8_0", "llama_q8_0_lookup_10"]


def bench(model_dir: Path, cache_dir: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", "speed", "--cases", str(CASE_FILE)]
    command += ["--model", str(model_dir), "--profile", "embedded", "--threads", "1"]
    command += ["--max-tokens", "20", "--seed", "0", *options]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "APPLY_SERVICE_CACHE": str(cache_dir)},
    )


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_bench_goes_on_where_it_was_stopped(tiny_model_dir: Path, tmp_path: Path) -> None:
    options = ["--out", str(tmp_path / "runs.jsonl"), "--json"]
    names = OWN
    if LLAMA_PYTHON:
        options += ["--peers", "--llama-python", LLAMA_PYTHON]
        names = OWN + PEERS
    first = bench(tiny_model_dir, tmp_path, "--limit", "1", *options)
    assert first.returncode == 0, first.stderr
    kept = (tmp_path / "runs.jsonl").read_bytes()
    second = bench(tiny_model_dir, tmp_path, "--limit", "2", "--rounds", "2", *options)
    assert second.returncode == 0, second.stderr
    assert (tmp_path / "runs.jsonl").read_bytes().startswith(kept), "it was not run again"
    one, both = json.loads(first.stdout), json.loads(second.stdout)
    assert both["case_ids"][:1] == one["case_ids"]
    assert list(both["contenders"]) == names
    assert both["settings"]["threads"] == 1
    assert both["machine"]["versions"]["torch"]
    for name, figures in both["contenders"].items():
        assert figures["seconds"] > 0
        assert figures["peak_memory_bytes"] > 1 << 24
        if name not in ("default", "llama_q8_0", "llama_q8_0_lookup_10"):
            assert figures["same_tokens_as_ours"] == 2, name
    again = bench(tiny_model_dir, tmp_path, "--limit", "2", "--rounds", "2", *options)
    assert "starting" not in again.stderr
    assert json.loads(again.stdout)["contenders"] == both["contenders"]
    changed = bench(tiny_model_dir, tmp_path, "--k", "8", *options)
    assert changed.returncode == 1
    assert "k is 64 there and 8 now" in changed.stderr


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--cases", "missing.jsonl"], "missing.jsonl: cannot be read"),
        (["--llama-python", "python"], "give --peers too"),
        (["--peers", "--llama-python", "no-such-python"], "no-such-python cannot be run"),
        (["--out", "missing/runs.jsonl"], "name a file that can be written"),
        (["--model", "missing/model.gguf"], "missing/model.gguf"),
    ],
)
def test_bad_input_is_said_before_anything_is_started(
    tiny_model_dir: Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    reason: str,
) -> None:
    command = ["speed", "--cases", str(CASE_FILE), "--model", str(tiny_model_dir)]
    assert main([*command, "--profile", "embedded", *options]) == 1
    messages = capsys.readouterr().err
    assert reason in messages
    assert "starting" not in messages


@pytest.mark.parametrize("value", ["0", "-3", "many"])
def test_a_count_below_one_is_refused(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["speed", "--cases", str(CASE_FILE), "--limit", value])
    assert "at least 1" in capsys.readouterr().err
