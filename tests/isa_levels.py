"""Kernels, training and parity at every instruction set of this processor, and the forced ways.

    python tests/isa_levels.py             # what `make test-isa` runs
    python tests/isa_levels.py --only AVX2 tests/kernels/test_linear.py

Each level caps what the libraries that compute may use; a cap cannot give a processor what it
lacks. Such a level is named as not run, and the slower ways of computing rows, which are what
protects answers there, are forced by APPLY_SERVICE_ROW_GROUPING instead. Exits with 1 if a level
fails.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from kernels.instruction_set import processor_levels

ROOT = Path(__file__).parents[1]
LEVELS = ("AVX2", "AVX512_CORE", "AVX512_CORE_BF16", "AVX512_CORE_AMX", "DEFAULT")
FORCED_WAYS = ("tiles", "single")
# ATen and MKL have caps of their own, for the oldest level alone.
_MORE_CAPS = {"AVX2": {"ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}}
_CAPS = ("ONEDNN_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY", "MKL_ENABLE_INSTRUCTIONS")
_FORCED = "APPLY_SERVICE_ROW_GROUPING"

_KERNELS = (
    *("tests/kernels/test_row_bits.py", "tests/kernels/test_linear.py"),
    *("tests/kernels/test_paged_attention.py", "tests/kernels/test_stacked_attention.py"),
    *("tests/kernels/test_int8_linear.py", "tests/batching/test_row_bits.py"),
)
_PARITY = (
    *("tests/batching/model/test_row_bits_choice.py", "tests/batching/test_parity.py"),
    "tests/end_to_end/test_embedded_parity.py",
)
_TRAINING = ("tests/training/test_cpu_ops.py", "tests/training/test_finetune.py")
# Of kernels the whole grid too, which `make test` leaves out.
_EVERYTHING = ("-m", "not gpu and not clients")


def runs_of(levels: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """A name and the environment of each run; prints the levels that are not run."""
    has = processor_levels()
    lacking = [level for level in levels if level != "DEFAULT" and level not in has]
    for level in levels:
        if level in lacking:
            print(f"{level}: not run here, the processor lacks it", flush=True)
        elif level == "DEFAULT" and has and has[-1] in levels:
            print(f"DEFAULT: {has[-1]} is all that the processor has", flush=True)
        else:
            cap = {} if level == "DEFAULT" else {"ONEDNN_MAX_CPU_ISA": level}
            yield level, cap | _MORE_CAPS.get(level, {})
    if lacking:
        for way in FORCED_WAYS:
            yield f"rows by {way}, in the place of {', '.join(lacking)}", {_FORCED: way}


def is_passing(environment: dict[str, str], *arguments: str) -> bool:
    """Whether a pytest of its own passes."""
    inherited = {name: value for name, value in os.environ.items() if name not in (*_CAPS, _FORCED)}
    command = [sys.executable, "-m", "pytest", "--timeout", "600", *arguments]
    process = subprocess.run(command, env=inherited | environment, cwd=ROOT, check=False)
    return process.returncode == 0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--only", action="append", choices=LEVELS, help="this level; may be repeated"
    )
    parser.add_argument("tests", nargs="*", help="instead of all that depends on the processor")
    args = parser.parse_args()
    print("processor flags:", flags_of_processor())
    print("levels of oneDNN:", *(processor_levels() or ("none",)), flush=True)
    failed = []
    for name, environment in runs_of(args.only or LEVELS):
        started = time.monotonic()
        if args.tests:
            is_passed = is_passing(environment, *args.tests)
        else:
            is_forced = _FORCED in environment
            grid = () if is_forced else _EVERYTHING
            others = _PARITY if is_forced else (*_PARITY, *_TRAINING)
            are_passed = [
                is_passing(environment, *grid, *_KERNELS),
                is_passing(environment, *others),
            ]
            is_passed = all(are_passed)
        outcome = "passed" if is_passed else "FAILED"
        print(f"{name}: {outcome} in {time.monotonic() - started:.0f} s", flush=True)
        failed += [] if is_passed else [name]
    print(f"failed: {'; '.join(failed)}" if failed else "every level that the processor has passed")
    return 1 if failed else 0


def flags_of_processor() -> str:
    """As the system lists them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return "unknown"
    flags = [line.partition(":")[2] for line in lines if line.startswith(("flags", "Features"))]
    return " ".join(flags[0].split()) if flags else "unknown"


if __name__ == "__main__":
    sys.exit(main())
