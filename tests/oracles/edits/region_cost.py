"""What an edit costs in a small and in a large file, and planning at its limits. Run by hand.

`python tests/oracle.py edits.region_cost` checks that a one-function edit in a file of 10,000 lines
needs at most 1,500 prompt tokens and at most 1.2 times the model time of the same edit in a file
of 300 lines; `--planning` that planning and judging stay fast and small on large and hostile
input. Both exit with 1 if a limit is passed.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from apply_service.apply.attempt import Attempt
from apply_service.apply.conclusion import conclude, conclude_decided, try_conclude_merge
from apply_service.apply.edit_request import EditRequest
from apply_service.apply.errors import FileTooLargeError
from apply_service.apply.planning.edit_plan import plan_edit
from apply_service.edit.read.snippet_error import SnippetError
from apply_service.edit.text.text_file import TextFile
from benchmarks.growth.sized_file import (
    MARKER,
    module_of,
    one_function_update,
    spread_functions,
)

MAX_PROMPT_TOKENS = 1500
MAX_TIME_RATIO = 1.2
NUM_ROUNDS = 40
MAX_FILE_BYTES = 1 << 20  # the service's default; what is larger is refused at once

MAX_PLAN_S = 0.8
MAX_PLAN_BYTES = 120 << 20
MAX_HOSTILE_S = 2.0
NUM_RUNS = 3
MAX_RUN_S = 120


@dataclass(frozen=True, slots=True)
class Case:
    """An original and an update of it."""

    original: str
    update: str
    path: str = "module.py"

    @property
    def edit(self) -> EditRequest:
        return EditRequest(
            original=TextFile.from_text(self.original), update=self.update, path=self.path
        )


def measure_model(num_rounds: int) -> int:
    """Compare model seconds in both files, one after the other; 1 if a limit is passed."""
    from apply_service.apply.run import ApplyPipeline, PipelineLimits
    from apply_service.config import load_settings
    from apply_service.models.loading import load_served_model
    from batching.async_engine import AsyncEngine

    settings = load_settings(flags={}, environment=os.environ).settings
    loaded = load_served_model(settings, report=lambda _stage: None)
    cases = {
        num_lines: [
            Case(module_of(num_lines), one_function_update(number)).edit
            for number in spread_functions(num_lines, num_rounds + 1)
        ]
        for num_lines in (300, 10_000)
    }

    async def scenario() -> dict[int, list[tuple[int, int, float, str]]]:
        figures: dict[int, list[tuple[int, int, float, str]]] = {300: [], 10_000: []}
        engine = AsyncEngine(loaded.engine)
        engine.start()
        pipeline = ApplyPipeline.on_engine(
            engine,
            loaded.profile,
            PipelineLimits(
                max_file_bytes=MAX_FILE_BYTES, max_draft_tokens=settings.max_draft_tokens
            ),
        )
        try:
            for turn in range(num_rounds + 1):  # the first turn warms up
                for num_lines, edits in cases.items():
                    # Regions of a small file overlap: without a salt it would reuse their work.
                    edit = replace(edits[turn], cache_salt=str(turn).encode())
                    outcome = await pipeline.apply(edit)
                    stats = outcome.stats
                    figures[num_lines].append(
                        (
                            stats.num_prompt_tokens,
                            stats.num_output_tokens,
                            stats.prefill_s + stats.decode_s,
                            f"{outcome.verdict.status}/{outcome.source}",
                        )
                    )
        finally:
            await engine.stop()
        return {num_lines: rows[1:] for num_lines, rows in figures.items()}

    figures = asyncio.run(scenario())
    for num_lines, rows in figures.items():
        shown = ", ".join(
            f"{prompt}+{answer} tokens {seconds:.2f} s {how}"
            for prompt, answer, seconds, how in rows
        )
        print(f"{num_lines:6} lines: {shown}")
    small, large = (
        statistics.median(seconds for _, _, seconds, _ in figures[num_lines])
        for num_lines in (300, 10_000)
    )
    most = max(prompt for prompt, _, _, _ in figures[10_000])
    print(f"prompt tokens in the large file: at most {most} (limit {MAX_PROMPT_TOKENS})")
    print(
        f"model seconds: {small:.3f} and {large:.3f}, ratio {large / small:.2f}"
        f" (limit {MAX_TIME_RATIO})"
    )
    return int(most > MAX_PROMPT_TOKENS or large > MAX_TIME_RATIO * small)


def hostile_cases() -> Mapping[str, Callable[[], Case]]:
    """Inputs that invite quadratic work, built on demand."""
    equal = "x = 1\n" * 100_000
    return {
        "1 MB, 20-line snippet": lambda: Case(_megabyte(), one_function_update(1500) + "\n" * 8),
        "10,000 markers": lambda: Case(
            module_of(300), "".join(f"{MARKER}\nvalue_{n} = {n}\n" for n in range(10_000))
        ),
        "10,000 markers alone": lambda: Case(module_of(300), f"{MARKER}\n" * 10_000),
        "100,000 equal lines": lambda: Case(equal, f"{MARKER}\nx = 1\ny = 2\n{MARKER}\n"),
        "equal lines in both": lambda: Case(equal, f"{MARKER}\n" + "x = 1\n" * 5000 + "y = 2\n"),
        "deep nesting": lambda: Case(
            "".join("  " * n + f"if v{n}:\n" for n in range(900)) + "  " * 900 + "pass\n",
            f"{MARKER}\n" + "  " * 900 + "pass\n" + "  " * 900 + "go()\n",
        ),
        "deep brackets": lambda: Case(
            "x = " + "(" * 20_000 + "1" + ")" * 20_000 + "\ny = 2\n", f"{MARKER}\ny = 2\nz = 3\n"
        ),
        "deep brackets, JSON": lambda: Case(
            "[\n" * 20_000 + "]\n" * 20_000, "[\n[\n1\n// ...\n]\n]\n", path="a.json"
        ),
        "one line of 1 MB": lambda: Case(
            "a = 1\nx = '" + "z" * 1_048_000 + "'\nb = 2\n", f"{MARKER}\nb = 2\nc = 3\n"
        ),
        "1 MB line changed": lambda: Case(
            "a = 1\nx = '" + "zq" * 524_000 + "'\nb = 2\n",
            f"{MARKER}\na = 1\nx = '" + "zp" * 524_000 + f"'\n{MARKER}\n",
        ),
        "diff of 50,000 lines": lambda: _diff(50_000),
        "diff of 100,000 lines": lambda: _diff(100_000),
        "50,000 lines sent whole": lambda: _whole(50_000),
        "100,000 lines sent whole": lambda: _whole(100_000),
        "1,000 SEARCH blocks": lambda: Case(
            "".join(f"old_{n} = {n}\n" for n in range(20_000)),
            "".join(
                f"<<<<<<< SEARCH\nold_{n} = {n}\n=======\nnew_{n} = {n}\n>>>>>>> REPLACE\n"
                for n in range(0, 20_000, 20)
            ),
        ),
    }


def _diff(num_lines: int) -> Case:
    """A diff of the first half of a file."""
    return Case(
        "".join(f"old_{n} = {n}\n" for n in range(num_lines)),
        f"@@ -1,{num_lines} +1,{num_lines} @@\n"
        + "".join(f"-old_{n} = {n}\n+new_{n} = {n}\n" for n in range(num_lines // 2)),
    )


def _whole(num_lines: int) -> Case:
    """A whole file with every second line changed."""
    return Case(
        "".join(f"old_{n} = {n}\n" for n in range(num_lines)),
        "".join(f"old_{n} = {n + n % 2}\n" for n in range(num_lines)),
    )


def _megabyte() -> str:
    text = module_of(60_000)
    return text[: text.rindex("\n", 0, 1 << 20) + 1]


def plan_and_judge(case: Case) -> dict[str, object]:
    """CPU seconds to plan and to judge, the extra peak memory of planning, and what came of it."""
    edit = case.edit
    plan_edit(Case("a = 1\nb = 2\n", f"{MARKER}\nb = 2\nc = 3\n").edit, max_file_bytes=1000)
    gc.disable()  # as in the process that does this in the service
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    try:
        plan = plan_edit(edit, max_file_bytes=MAX_FILE_BYTES)
    except (SnippetError, FileTooLargeError) as error:
        seconds = time.process_time() - started
        return {"plan_s": seconds, "judge_s": 0.0, "bytes": 0, "end": type(error).__name__}
    planned = time.process_time()
    extra = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    if plan.decision is not None:
        outcome = conclude_decided(plan)
    else:
        merged = try_conclude_merge(plan)
        unchanged = Attempt(source="model", lines=plan.original_lines)
        outcome = conclude(plan, unchanged) if merged is None else merged
    return {
        "plan_s": planned - started,
        "judge_s": time.process_time() - planned,
        "bytes": extra << 10,
        "end": f"{outcome.verdict.status} {outcome.verdict.findings[:1]}"[:100],
    }


def measure_planning(name: str | None) -> int:
    """Each case in processes of its own, the median of them; 1 if a limit is passed."""
    num_failed = 0
    for case_name in hostile_cases() if name is None else [name]:
        try:
            runs = [_run_alone(case_name) for _ in range(NUM_RUNS)]
        except subprocess.TimeoutExpired:
            print(f"{case_name:28} more than {MAX_RUN_S} s")
            num_failed += 1
            continue
        except subprocess.CalledProcessError as error:
            print(f"{case_name:28} failed: {error.stderr.decode().splitlines()[-1:]}")
            num_failed += 1
            continue
        plan_s, judge_s, num_bytes = (
            statistics.median(run[figure] for run in runs)
            for figure in ("plan_s", "judge_s", "bytes")
        )
        is_large = case_name.startswith("1 MB, 20")
        limit_s = MAX_PLAN_S if is_large else MAX_HOSTILE_S
        is_over = plan_s > limit_s or judge_s > MAX_HOSTILE_S
        is_over = is_over or (is_large and num_bytes > MAX_PLAN_BYTES)
        num_failed += is_over
        print(
            f"{case_name:28} plan {plan_s:6.3f} s, verdict {judge_s:6.3f} s,"
            f" {num_bytes / (1 << 20):6.1f} MB {'OVER ' if is_over else ''}{runs[0]['end']}"
        )
    return int(num_failed > 0)


def _run_alone(case_name: str) -> dict[str, Any]:
    """`plan_and_judge` in a new process. Raises what `subprocess.run` does."""
    command = [sys.executable, __file__, "--one", case_name]
    run = subprocess.run(command, capture_output=True, check=True, timeout=MAX_RUN_S)
    return dict(json.loads(run.stdout))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=NUM_ROUNDS)
    parser.add_argument("--planning", action="store_true", help="plan and judge, without a model")
    parser.add_argument("--case", help="one of the inputs of --planning")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(plan_and_judge(hostile_cases()[args.one]())))
        return 0
    if args.planning or args.case:
        return measure_planning(args.case)
    return measure_model(args.rounds)


if __name__ == "__main__":
    sys.exit(main())
