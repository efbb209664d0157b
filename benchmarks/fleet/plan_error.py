"""Sets what a plan says of this machine beside edits of the embedded model that run on it.

The plan has the tokens, passes and text work of the same edits, and the costs of steps as the
engine keeps them after the run.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from apply_service.cli.plan import this_machine
from apply_service.config import Settings
from apply_service.fleet.capacity import Load, rate_at
from apply_service.http.routes.edit_run import edit_result, run_body
from apply_service.http.schemas import ApplyBody, ApplyResult
from apply_service.models.found_model import find_model
from apply_service.models.store import cache_dir
from apply_service.service import ApplyService
from apply_service.service_of_settings import service_of

_NUM_LINES = 30
_NUM_WARM_UP = 4


@dataclass(frozen=True, slots=True)
class _Run:
    num_at_once: int
    seconds: float
    results: list[ApplyResult]


def compare(num_edits: int, counts: Sequence[int]) -> str:
    """Run the edits, so many at once, and print both figures of each run as Markdown."""
    settings = Settings(in_process=True, text_workers=2, deadline_s=600.0, log_level="warning")
    found = find_model(settings, report=lambda _stage: None)
    with asyncio.Runner() as runner:
        service = service_of(settings, found)
        alone, runs = runner.run(_measure(service, num_edits, counts))
    # Stopping has stored the costs.
    machine = this_machine(
        "embedded", num_cores=os.cpu_count() or 1, folder=cache_dir() / "step-costs"
    )
    text_ms = 1e3 * statistics.median(result.timing.total for result in alone.results)
    lines = ["| edits at once | edits/s, run | plan | plan / run |", "|---|---|---|---|"]
    for run in runs:
        planned = rate_at(_load_of(run, text_ms), machine, num_at_once=run.num_at_once).edits_per_s
        measured = len(run.results) / run.seconds
        lines.append(
            f"| {run.num_at_once} | {measured:.2f} | {planned:.2f} | {planned / measured:.2f} |"
        )
    return "\n".join(lines)


async def _measure(
    service: ApplyService, num_edits: int, counts: Sequence[int]
) -> tuple[_Run, list[_Run]]:
    """Edits without the model one by one, and with it at each count."""
    service.start()
    await service.wait_for_model(is_patient=True)
    await _run(service, range(_NUM_WARM_UP), 1, "always")
    alone = await _run(service, range(num_edits), 1, "never")
    runs = []
    for place, count in enumerate(counts, start=1):
        numbers = range(place * num_edits, (place + 1) * num_edits)  # none is in the cache
        runs.append(await _run(service, numbers, count, "always"))
    await service.stop()
    return alone, runs


async def _run(
    service: ApplyService, numbers: range, num_at_once: int, use_model: Literal["always", "never"]
) -> _Run:
    free = asyncio.Semaphore(num_at_once)

    async def run_one(number: int) -> ApplyResult:
        lines = [f"    step_{line} = part_{number}(step, {line})\n" for line in range(_NUM_LINES)]
        head = f"def build_{number}(step):\n"
        body = ApplyBody(
            original=head + "".join(lines),
            update=f"{head}    # ... existing code ...\n{lines[20]}    log(step)\n{lines[21]}"
            "    # ... existing code ...\n",
            use_model=use_model,
            checks="off",
        )
        async with free:
            return await edit_result(body, service, await run_body(body, service, None))

    start = time.perf_counter()
    results = await asyncio.gather(*(run_one(number) for number in numbers))
    return _Run(num_at_once, time.perf_counter() - start, results)


def _load_of(run: _Run, text_ms: float) -> Load:
    num_edits = len(run.results)
    num_passes = max(1, sum(result.speculation.target_passes for result in run.results))
    num_prompt = sum(result.usage.prompt_tokens for result in run.results)
    num_answer = sum(result.usage.completion_tokens for result in run.results)
    num_drafted = sum(result.speculation.drafted for result in run.results)
    return Load(
        edits_per_s=1.0,
        prompt_tokens=num_prompt / num_edits,
        answer_tokens=num_answer / num_edits,
        cached_share=sum(result.usage.cached_tokens for result in run.results) / num_prompt,
        tokens_per_pass=max(1.0, num_answer / num_passes),
        rows_per_pass=1.0 + num_drafted / num_passes,
        text_ms=text_ms,
    )
