"""Which number format a model is served in, by what the CPU can compute."""

from __future__ import annotations

import logging

import pytest

from apply_service.config import Settings
from apply_service.models import loading as model_loading
from apply_service.models.loading import resolve_dtype
from kernels import instruction_set
from kernels.instruction_set import has_fast_bfloat16, onednn_levels, processor_levels


def test_a_cpu_without_bfloat16_serves_float32(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(model_loading, "has_bfloat16", lambda: False)
    with caplog.at_level(logging.WARNING):
        assert resolve_dtype(Settings(dtype="bfloat16"), "cpu") == "float32"
    assert "cannot compute in bfloat16" in caplog.text
    assert resolve_dtype(Settings(dtype="bfloat16"), "cuda") == "bfloat16"


def test_a_cap_counts_as_an_older_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"avx2": True, "avx512_bw": True, "avx512_vnni": True, "avx512_bf16": True}
    monkeypatch.setattr(instruction_set, "_capabilities", lambda: known)
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    monkeypatch.delenv("DNNL_MAX_CPU_ISA", raising=False)
    everything = ("AVX2", "AVX512_CORE", "AVX512_CORE_VNNI", "AVX512_CORE_BF16")
    assert processor_levels() == onednn_levels() == everything
    assert has_fast_bfloat16()
    assert resolve_dtype(Settings(), "cpu") == "bfloat16"
    uncapped = instruction_set.instruction_set()
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE")
    assert onednn_levels() == ("AVX2", "AVX512_CORE")
    assert resolve_dtype(Settings(), "cpu") == "float32"
    assert processor_levels() == everything
    assert instruction_set.instruction_set() != uncapped
