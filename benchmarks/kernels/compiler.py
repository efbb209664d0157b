"""Compiles every kernel for a GPU that may be absent: `python -m benchmarks.kernels.compiler 90`.

The functions that launch kernels are called on CPU tensors of real sizes; instead of a launch, the
kernel is compiled for what it was given. Prints a JSON list of `CompiledKernel`.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import torch
import triton.backends.nvidia
from torch import Tensor
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile
from triton.runtime.jit import JITFunction

from kernels.attention_work import AttentionHeads, AttentionWork
from kernels.gpu import paged_attention
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
_OPTIONS = ("num_warps", "num_stages", "maxnreg")


class CompiledKernel(msgspec.Struct, frozen=True, kw_only=True):
    """What a kernel became.

    shared: bytes of shared memory; registers: of a thread; spilled: bytes of registers that a
    thread keeps in memory; num_matrix_instructions: in its code
    """

    name: str
    constants: dict[str, Any]
    shared: int
    registers: int
    spilled: int
    num_matrix_instructions: int


class Compiler:
    """Compiles kernels instead of launching them."""

    def __init__(self, arch: int) -> None:
        self._arch = arch
        self._target = GPUTarget("cuda", arch, 32)
        self.report: list[CompiledKernel] = []

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
        registers, spilled = _registers_of(code, self._arch)
        self.report.append(
            CompiledKernel(
                name=kernel.__name__,
                constants={kernel.arg_names[at]: value for (at,), value in constants.items()},
                shared=compiled.metadata.shared,
                registers=registers,
                spilled=spilled,
                num_matrix_instructions=code.count("wgmma.mma_async") + code.count("mma.sync"),
            )
        )


def _registers_of(ptx: str, arch: int) -> tuple[int, int]:
    """Registers of a thread, and bytes of them that are stored and loaded again, by `ptxas -v`."""
    assembler = Path(triton.backends.nvidia.__path__[0]) / "bin" / "ptxas"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.ptx"
        source.write_text(ptx, encoding="ascii")
        name = f"sm_{arch}{'a' if arch >= 90 else ''}"
        run = subprocess.run(
            [assembler, "-v", f"--gpu-name={name}", source, "-o", source.with_suffix(".cubin")],
            capture_output=True,
            text=True,
            check=True,
        )
    registers = re.search(r"Used (\d+) registers", run.stderr)
    spills = re.findall(r"(\d+) bytes spill (?:stores|loads)", run.stderr)
    assert registers is not None, run.stderr
    return int(registers[1]), sum(map(int, spills))


def _type_of(value: Any, *, is_constant: bool) -> str:
    if is_constant:
        return "constexpr"
    if isinstance(value, Tensor):
        return _TYPES[value.dtype]
    return "fp32" if isinstance(value, float) else "i32"


def launch_attention(heads: AttentionHeads) -> None:
    """Launch attention once for each size of a tile."""
    cache = torch.zeros(2, 16, heads.num_kv_heads, heads.head_dim, dtype=BF16)
    num_heads = heads.num_groups * heads.num_kv_heads
    for num_tokens in (2, 65):
        paged_attention_triton(
            torch.zeros(num_tokens, num_heads, heads.head_dim, dtype=BF16),
            key_cache=cache,
            value_cache=cache,
            block_tables=torch.zeros(1, 512, dtype=torch.int32),
            cu_query_lens=torch.tensor([0, num_tokens], dtype=torch.int32),
            context_lens=torch.tensor([8192], dtype=torch.int32),
            scale=0.1,
            work=AttentionWork.plan(
                [num_tokens], [8192], num_tokens=num_tokens, table_width=512, heads=heads
            ),
        )


def launch_all() -> None:
    """Launch each kernel once with the sizes of a 7B model; attention also with those of 135M."""
    for num_groups, num_kv_heads, head_dim in ((3, 3, 64), (7, 4, 128)):
        launch_attention(
            AttentionHeads(num_groups=num_groups, num_kv_heads=num_kv_heads, head_dim=head_dim)
        )
    cache = torch.zeros(2, 16, 4, 128, dtype=BF16)
    packed = torch.zeros(3, 36 * 128, dtype=BF16).view(3, 36, 128)
    query, key, value = packed.split((28, 4, 4), dim=1)  # type: ignore[no-untyped-call]
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
    arch = int(sys.argv[1])
    compiler = Compiler(arch)

    def run(kernel: JITFunction, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> None:
        del grid, warmup
        compiler.compile(kernel, *args, **kwargs)

    JITFunction.run = run
    with patch.object(paged_attention, "capability_of", lambda _device: divmod(arch, 10)):
        launch_all()
    print(msgspec.json.encode(compiler.report).decode())


if __name__ == "__main__":
    main()
