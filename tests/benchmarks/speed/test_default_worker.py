"""The service's default as a contender: whole edits, judged, timed from the texts on."""

from __future__ import annotations

from pathlib import Path

from case_files import case_file
from oracles.damage.corrupting_oracle import CorruptingOracle

from apply_service.apply.run import PipelineLimits
from apply_service.evaluate.cases.case_file import read_cases
from apply_service.evaluate.contenders.pipeline import PipelineContender
from apply_service.prompts.profile import load_profile
from benchmarks.speed.default_worker import DefaultJob, run_default

CASES = list(read_cases(case_file("short_edits")))[:3]
LIMITS = PipelineLimits(max_file_bytes=20_000, max_draft_tokens=64)


def test_a_right_answer_is_exact_and_its_first_text_comes_before_its_end(
    tiny_model_dir: Path,
) -> None:
    oracle = CorruptingOracle(load_profile("embedded", tiny_model_dir), share=0.0)
    contender = PipelineContender(oracle.load(), LIMITS, has_fallback=True)
    try:
        for case in CASES:
            oracle.begin(case)
            run = run_default(contender, DefaultJob(case=case, salt="a"))
            assert run.is_exact
            assert run.status in ("applied", "needs_review")
            assert run.first_token_s is not None
            assert 0 < run.first_token_s < run.seconds
    finally:
        contender.close()
