"""Our engine as a contender: the same tokens with drafts and without, from texts on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest
from case_files import case_file

from apply_service.evaluate.cases.case_file import read_cases
from apply_service.prompts.profile import load_profile
from benchmarks.speed.case import ordered_cases, try_prepare
from benchmarks.speed.run import SpeedRun
from benchmarks.speed.worker import SpeedJob, SpeedWorker, SpeedWorkerSettings

CASE_FILE = case_file("short_edits")
CASES = list(read_cases(CASE_FILE))


def run_worker(model_dir: Path, jobs: list[SpeedJob], *, k: int) -> list[SpeedRun]:
    settings = SpeedWorkerSettings(
        model_dir=str(model_dir),
        profile="embedded",
        num_threads=None,
        draft_budget="fixed",
        max_draft_tokens=k,
    )

    async def run_all() -> list[SpeedRun]:
        worker = SpeedWorker(settings)
        async with worker.running():
            assert worker.facts.dtype == "float32"
            assert worker.facts.max_position == 4096
            return [await worker.run(job) for job in jobs]

    return asyncio.run(run_all())


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APPLY_SERVICE_CACHE", str(tmp_path))


def test_drafts_change_the_passes_and_not_the_tokens(tiny_model_dir: Path) -> None:
    jobs = [SpeedJob(case=case, max_tokens=20) for case in CASES[:2]] * 2
    ours = run_worker(tiny_model_dir, jobs, k=8)
    off = run_worker(tiny_model_dir, jobs, k=0)
    assert [run.token_ids for run in ours] == [run.token_ids for run in off]
    for run, other in zip(ours, off, strict=True):
        assert run.stats is not None
        assert other.stats is not None
        assert run.stats.num_cached_tokens == 0, "a case that comes again is computed again"
        assert 0 < run.num_first_tokens <= len(run.token_ids) == 20
        assert run.first_token_s is not None
        assert run.first_token_s <= run.seconds
        lost = sum(run.stats.losses.by_cause.values())
        assert lost == run.stats.decode_passes * 9 - 20
        assert other.stats.drafted == sum(other.stats.losses.by_cause.values()) == 0


def test_a_case_has_room_for_its_answer_or_less(tiny_model_dir: Path) -> None:
    profile = load_profile("embedded", tiny_model_dir)
    whole = try_prepare(CASES[0], profile, max_tokens=None)
    assert whole is not None
    expected = CASES[0].expected.removesuffix("\n").split("\n")
    assert whole.max_tokens >= len(whole.prompt.answer_token_ids(expected))
    assert whole.predicted_token_ids, "the merge is a reference, as in the service"
    short = try_prepare(CASES[0], profile, max_tokens=5)
    assert short is not None
    assert short.max_tokens == 5


def test_cases_that_ask_no_model_are_left_out(tiny_model_dir: Path) -> None:
    profile = load_profile("embedded", tiny_model_dir)
    for update in (CASES[0].expected, "\n"):
        case = msgspec.structs.replace(CASES[0], update=update)
        assert try_prepare(case, profile, max_tokens=None) is None


def test_a_seed_takes_cases_at_random_and_the_same_ones_again() -> None:
    in_order = [case.id for case in ordered_cases(CASE_FILE, seed=None)]
    assert in_order == [case.id for case in CASES]
    first, again, other = (
        [case.id for case in ordered_cases(CASE_FILE, seed=seed)] for seed in (0, 0, 1)
    )
    assert first == again
    assert first != other
    assert sorted(first) == sorted(other) == sorted(in_order)


def test_a_case_that_stands_twice_in_the_file_is_run_once(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl.gz"
    path.write_bytes(2 * CASE_FILE.read_bytes())
    assert len(ordered_cases(path, seed=0)) == len(CASES)
