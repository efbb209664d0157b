"""The CPU's abilities, and the part of them that libraries may use to compute."""

from __future__ import annotations

import os
import platform

import torch

# oneDNN's levels, each with what the processor must have; a higher one has all of the lower ones.
_LEVELS = {
    "SSE41": "sse4_1",
    "AVX": "avx",
    "AVX2": "avx2",
    "AVX2_VNNI": "avx_vnni",
    "AVX2_VNNI_2": "avx_ne_convert",
    "AVX512_CORE": "avx512_bw",
    "AVX512_CORE_VNNI": "avx512_vnni",
    "AVX512_CORE_BF16": "avx512_bf16",
    "AVX512_CORE_FP16": "avx512_fp16",
    "AVX512_CORE_AMX": "amx_bf16",
    "AVX512_CORE_AMX_FP16": "amx_fp16",
}
_CAP_VARIABLES = ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")
_OTHER_CAPS = ("ATEN_CPU_CAPABILITY", "MKL_ENABLE_INSTRUCTIONS", "MKL_CBWR")


def processor_levels() -> tuple[str, ...]:
    """oneDNN's levels that this processor has, ascending; none on other kinds of processors."""
    capabilities = _capabilities()
    return tuple(level for level, needed in _LEVELS.items() if capabilities.get(needed))


def onednn_levels() -> tuple[str, ...]:
    """The processor's levels that oneDNN may use; `ONEDNN_MAX_CPU_ISA` can forbid upper ones."""
    named = [os.environ[name].upper() for name in _CAP_VARIABLES if os.environ.get(name)]
    order = list(_LEVELS)
    if not named or named[0] not in _LEVELS:
        return processor_levels()
    allowed = order[: order.index(named[0]) + 1]
    return tuple(level for level in processor_levels() if level in allowed)


def instruction_set() -> str:
    """A name for everything that decides which code computes: equal names, equal results."""
    levels = onednn_levels()
    caps = [f"{name}={os.environ[name]}" for name in _OTHER_CAPS if os.environ.get(name)]
    return " ".join(
        [
            platform.machine(),
            levels[-1] if levels else "generic",
            torch.backends.cpu.get_cpu_capability(),
            *caps,
        ]
    )


def has_fast_bfloat16() -> bool:
    """True if this CPU multiplies bfloat16 itself, at least twice as fast as float32.

    False with a torch that does not report the CPU's abilities.
    """
    return _has_onednn() and bool({"AVX512_CORE_BF16", "AVX512_CORE_AMX"} & set(onednn_levels()))


def has_bfloat16() -> bool:
    """True if this CPU can compute linear layers in bfloat16 at all."""
    if not _has_onednn():
        return True  # by torch itself
    try:
        weight = torch.ops.mkldnn._reorder_linear_weight(torch.zeros(8, 8, dtype=torch.bfloat16))
        rows = torch.zeros(2, 8, dtype=torch.bfloat16)
        torch.ops.mkldnn._linear_pointwise(rows, weight, None, "none", [], "")
    except RuntimeError:
        return False
    return True


def _has_onednn() -> bool:
    return bool(torch.backends.mkldnn.is_available())  # type: ignore[no-untyped-call]


def _capabilities() -> dict[str, object]:
    tell = getattr(torch.cpu, "get_capabilities", dict)
    capabilities: dict[str, object] = tell()
    return capabilities
