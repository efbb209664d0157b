"""The way in which a CPU computes rows: kept, logged, forced, and part of the cache's keys."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from engine_runs import running_engine

from batching.cache.kv_namespace import kv_namespace
from batching.config import EngineConfig, RowGroupingMode
from batching.model.runner import ModelRunner
from batching.request import EngineRequest, SamplingParams
from kernels.row_grouping import RowGrouping


def make_config(model_dir: Path, mode: RowGroupingMode = "auto") -> EngineConfig:
    return EngineConfig(model_path=model_dir, kv_memory_bytes=8 << 20, row_grouping=mode)


def test_a_forced_way_computes_the_same_tokens(tiny_model_dir: Path) -> None:
    tokens = []
    for mode in ("auto", "tiles", "single"):
        request = EngineRequest(
            request_id="r",
            prompt_token_ids=tuple(range(3, 60)),
            sampling=SamplingParams(max_tokens=12),
        )
        with running_engine(make_config(tiny_model_dir, mode)) as running:
            row_bits = running.engine.model_info.row_bits
            (outcome,) = running.run([request])
        assert row_bits is not None
        if mode != "auto":
            is_faulty = f"by {mode} give a row other bits" in row_bits.reason
            slower = {RowGrouping.SINGLE} if is_faulty else set()
            assert {row_bits.linear, row_bits.attention} <= {RowGrouping(mode), *slower}
            assert f"nothing faster than {mode} is allowed" in str(row_bits)
        tokens.append(outcome.token_ids)
    assert tokens == tokens[:1] * 3


def test_a_slower_way_is_a_warning_with_its_reason(
    tiny_model_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        ModelRunner(make_config(tiny_model_dir))
        ModelRunner(make_config(tiny_model_dir, "single"))
    fast, slow = [one for one in caplog.records if "compute rows" in one.getMessage()]
    assert slow.levelno == logging.WARNING
    assert "nothing faster than single is allowed" in slow.getMessage()
    assert fast.getMessage() != slow.getMessage()


def test_other_bits_are_not_shared(tiny_model_dir: Path) -> None:
    """How a runner computes is part of the keys of shared tiers, and differs where bits may."""
    runners = [ModelRunner(make_config(tiny_model_dir, mode)) for mode in ("auto", "single")]
    computed_by = [runner.computed_by for runner in runners]
    assert {"torch", "instruction_set", "row_bits"} <= computed_by[0].keys()
    other = {**computed_by[0], "instruction_set": "another"}
    newer = {**computed_by[0], "torch": "99"}
    names = {
        kv_namespace(
            tiny_model_dir,
            dtype="float32",
            device="cpu",
            computed_by=one,
            block_size=16,
            chunk_tokens=64,
            payload="exact",
        )
        for one in (*computed_by, other, newer)
    }
    assert len(names) == 4
