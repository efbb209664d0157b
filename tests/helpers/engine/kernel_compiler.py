"""Compiles every kernel for a GPU that may be absent, for example for compute capability 9.0.

    python tests/helpers/engine/kernel_compiler.py 90

The functions that launch kernels are called on CPU tensors of real sizes; instead of a launch, the
kernel is compiled for what it was given. Prints a JSON object for each: name, shared memory in
bytes, and how many matrix instructions its code has.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import torch
from torch import Tensor
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile
from triton.runtime.jit import JITFunction

from kernels.gpu.greedy_head import greedy_head_triton
from kernels.gpu.greedy_verify import greedy_verify_triton
from kernels.gpu.paged_attention import paged_attention_triton
from kernels.gpu.rejection_verify import rejection_verify_triton
from kernels.gpu.rms_norm import add_rms_norm_triton, rms_norm_triton
from kernels.gpu.rotary import rotary_triton
from kernels.gpu.silu_mul import silu_mul_triton
from kernels.gpu.store_kv import store_kv_triton
from kernels.rejection_verify import SamplingTensors
from kernels.verification import AllowedTokens

BF16 = torch.bfloat16
_TYPES = {
    torch.bfloat16: "*bf16",
    torch.float32: "*fp32",
    torch.float64: "*fp64",
    torch.int32: "*i32",
    torch.int64: "*i64",
}
_ALIGNED = [["tt.divisibility", 16]]
_OPTIONS = ("num_warps", "num_stages")


class Compiler:
    """Compiles kernels instead of launching them."""

    def __init__(self, arch: int) -> None:
        self._target = GPUTarget("cuda", arch, 32)
        self.report: list[dict[str, Any]] = []

    def compile(self, kernel: JITFunction, *args: Any, **kwargs: Any) -> None:
        """Compile `kernel` for its arguments, as aligned as they are on a GPU."""
        options = {name: kwargs.pop(name) for name in _OPTIONS if name in kwargs}
        values = dict(zip(kernel.arg_names, args, strict=False)) | kwargs
        signature: dict[str, str] = {}
        constants: dict[tuple[int], Any] = {}
        aligned: dict[tuple[int], Any] = {}
        for index, parameter in enumerate(kernel.params):
            value = values[parameter.name]
            signature[parameter.name] = _type_of(value, is_constant=parameter.is_constexpr)
            if parameter.is_constexpr:
                constants[(index,)] = value
            elif isinstance(value, Tensor) or (
                isinstance(value, int) and value % 16 == 0 and not parameter.do_not_specialize
            ):
                aligned[(index,)] = _ALIGNED
        source = ASTSource(kernel, signature, constexprs=constants, attrs=aligned)
        compiled = compile(source, target=self._target, options=options)
        code = compiled.asm["ptx"]
        self.report.append(
            {
                "name": kernel.__name__,
                "constants": {kernel.arg_names[at]: value for (at,), value in constants.items()},
                "shared": compiled.metadata.shared,
                "num_matrix_instructions": code.count("wgmma.mma_async") + code.count("mma.sync"),
            }
        )


def _type_of(value: Any, *, is_constant: bool) -> str:
    if is_constant:
        return "constexpr"
    if isinstance(value, Tensor):
        return _TYPES[value.dtype]
    return "fp32" if isinstance(value, float) else "i32"


def launch_all() -> None:
    """Launch each kernel once with the sizes of a 7B model, attention in three cuts."""
    cache = torch.zeros(2, 16, 4, 128, dtype=BF16)
    for num_tokens, max_blocks in ((1, 512), (65, 512), (65, 32)):
        paged_attention_triton(
            torch.zeros(num_tokens, 28, 128, dtype=BF16),
            key_cache=cache,
            value_cache=cache,
            block_tables=torch.zeros(1, max_blocks, dtype=torch.int32),
            cu_query_lens=torch.tensor([0, num_tokens], dtype=torch.int32),
            context_lens=torch.tensor([num_tokens], dtype=torch.int32),
            scale=0.1,
        )
    packed = torch.zeros(3, 36 * 128, dtype=BF16).unflatten(1, (36, 128))
    query, key, value = packed.split((28, 4, 4), dim=1)
    slots = torch.zeros(3, dtype=torch.int64)
    store_kv_triton(key, value, key_cache=cache, value_cache=cache, slot_mapping=slots)
    angles = torch.zeros(3, 128, dtype=BF16)
    rotary_triton(query, key, cos=angles, sin=angles)
    hidden, weight = torch.zeros(3, 3584, dtype=BF16), torch.zeros(3584, dtype=BF16)
    rms_norm_triton(hidden, weight, eps=1e-6)
    rms_norm_triton(query, weight[:128], eps=1e-6)
    add_rms_norm_triton(hidden, hidden, weight, eps=1e-6)
    silu_mul_triton(torch.zeros(3, 2 * 18944, dtype=BF16))
    logits, drafts = torch.zeros(3, 152064), torch.full((3,), -1)
    allowed = AllowedTokens(drafts, torch.tensor([0, 0, 1, 3]), torch.zeros(3))
    ones = torch.ones(1)
    sampling = SamplingTensors(ones, ones.long(), ones, ones.long(), drafts)
    cu_rows = torch.tensor([0, 3])
    for lists in (None, allowed):
        greedy_verify_triton(logits, drafts, cu_rows=cu_rows, allowed=lists)
        rejection_verify_triton(logits, drafts, cu_rows=cu_rows, sampling=sampling, allowed=lists)
    head = torch.zeros(300, 3584, dtype=BF16)
    for num_rows in (1, 66, 130):
        greedy_head_triton(
            torch.zeros(num_rows, 3584, dtype=BF16),
            head,
            torch.full((num_rows,), -1),
            cu_rows=torch.tensor([0, num_rows]),
        )


def main() -> None:
    """Compile for the compute capability that the first argument names."""
    compiler = Compiler(int(sys.argv[1]))

    def run(kernel: JITFunction, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> None:
        del grid, warmup
        compiler.compile(kernel, *args, **kwargs)

    JITFunction.run = run
    launch_all()
    print(json.dumps(compiler.report))


if __name__ == "__main__":
    main()
