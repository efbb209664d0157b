"""Merges a known edit, without the model and with it, and compares the result."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING

from apply_service.apply.conclusion import try_conclude_alone
from apply_service.apply.edit_request import EditRequest, UseModel
from apply_service.apply.outcome import Outcome
from apply_service.apply.planning.edit_plan import EditPlan, plan_edit
from apply_service.cli.doctor.check import Check, failed, passed, warned
from apply_service.config import Settings
from apply_service.edit.text.text_file import TextFile
from apply_service.observe.progress import Progress

if TYPE_CHECKING:
    from apply_service.service import LoadedModel
    from kernels.row_grouping import RowBits

_EXAMPLE_DIR = Path(__file__).parents[1] / "demo" / "example"
_DEADLINE_S = 120.0


def check_merge(settings: Settings) -> Check:
    """The merge by rules alone: text, grammar and verdict."""
    outcome = try_conclude_alone(_plan(settings, "never"))
    assert outcome is not None, "without a model the outcome is decided at once"
    return _judge("merge", outcome)


def check_merge_with_model(settings: Settings, progress: Progress) -> list[Check]:
    """Load the model as the server would, say how it computes, and let it merge."""
    # Torch takes seconds to import, and the other checks do without.
    from apply_service.cli.local import run_plan
    from apply_service.models.loading import load_served_model
    from apply_service.models.manifest import ModelStoreError
    from apply_service.prompts.errors import PromptError
    from batching.errors import EngineError

    started = time.monotonic()
    try:
        loaded: LoadedModel = load_served_model(settings, report=progress.show_stage)
        load_s = time.monotonic() - started
        plan = _plan(settings, "always")
        outcome = asyncio.run(run_plan(loaded, settings, plan, progress=progress))
    except (ModelStoreError, PromptError, EngineError) as error:
        return [failed("model merge", str(error))]
    finally:
        progress.clear()
    checks = _check_row_bits(loaded.engine.model_info.row_bits)
    return [*checks, _judge("model merge", outcome, load_s=round(load_s, 3))]


def _check_row_bits(row_bits: RowBits | None) -> list[Check]:
    """How a CPU computes rows so that none depends on its neighbours; nothing on a GPU."""
    if row_bits is None:
        return []
    facts = {
        "instruction_set": row_bits.instruction_set,
        "linear": row_bits.linear.value,
        "attention": row_bits.attention.value,
        "reason": row_bits.reason,
    }
    if row_bits.is_fastest:
        return [passed("rows", str(row_bits), **facts)]
    remedy = "answers are right and slower; another release of torch may be faster here"
    return [warned("rows", str(row_bits), remedy=remedy, **facts)]


def _plan(settings: Settings, use_model: UseModel) -> EditPlan:
    original = (_EXAMPLE_DIR / "settings.py").read_bytes()
    edit = EditRequest(
        original=TextFile.from_bytes(original),
        update=(_EXAMPLE_DIR / "update.txt").read_text(encoding="utf-8"),
        path="settings.py",
        use_model=use_model,
        deadline_s=_DEADLINE_S,
    )
    return plan_edit(edit, max_file_bytes=settings.max_file_bytes)


def _judge(name: str, outcome: Outcome, **facts: float) -> Check:
    expected = (_EXAMPLE_DIR / "expected.py").read_text(encoding="utf-8")
    status = outcome.verdict.status
    is_right = outcome.merged == expected
    text = f"an example was {status} in {outcome.total_s:.2f} s"
    known = {**facts, "verdict": status, "seconds": round(outcome.total_s, 4), "is_right": is_right}
    if outcome.stats.num_output_tokens:
        text += f", {outcome.tokens_per_target_pass} tokens a pass"
    if is_right and status == "applied":
        return passed(name, text, **known)
    if is_right or status in ("needs_review", "rejected"):
        remedy = "the verdict protects the file; try another model or profile"
        return warned(name, text, remedy=remedy, **known)
    remedy = "the result is wrong and the verdict does not say so; do not use this model"
    return failed(name, f"{text}, and wrong", remedy=remedy, **known)
