"""Pairs of batches on a tiny model: what is compared, kept and refused."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from tiny_model import write_tiny_model

from apply_service.cli.main import EXIT_ERROR, EXIT_OK
from apply_service.config import Settings
from apply_service.evaluate.cases.case_file import read_cases
from apply_service.models.loading import resolve_dtype
from apply_service.prompts.profile import load_profile
from batching.config import EngineConfig
from batching.engine import build_engine
from batching.request import EngineRequest
from benchmarks.__main__ import main
from benchmarks.concurrency.batch_engine import BatchEngine
from benchmarks.concurrency.pairs import BatchFigures, ConcurrencyPair, summarise_pairs
from benchmarks.concurrency.tasks import make_tasks


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model")
    write_tiny_model(path, seed=0)
    return path


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lines = []
    for number in range(20):
        name = f"part_{number}"
        original = f"import os\n\n\ndef {name}():\n    return {number}\n\n\nLIMIT = {number}\n"
        update = f"# ... existing code ...\ndef {name}():\n    return {number + 1}\n# ...\n"
        row = {"id": name, "path": "a.py", "original": original, "update": update}
        lines.append(json.dumps({**row, "expected": ""}))
    path = tmp_path_factory.mktemp("cases") / "cases.jsonl"
    path.write_text("\n".join(lines))
    return path


@pytest.fixture
def command(model_dir: Path, cases: Path) -> list[str]:
    base = ["concurrency", "--cases", str(cases), "--model", str(model_dir)]
    base += ["--profile", "embedded", "--max-tokens", "8", "--max-prompt-tokens", "400"]
    base += ["--kv-memory", "16MiB", "--tasks", "4", "--threads", "1"]
    return [*base, "--requests", "2"]


def _batch(seconds: float, tokens: int = 100) -> BatchFigures:
    return BatchFigures(seconds=seconds, answer_tokens=tokens, steps=5, drafted=10, accepted=4)


def _pair(number: int, off_s: float, budgeted_s: float) -> ConcurrencyPair:
    return ConcurrencyPair(
        workload="new",
        concurrency=4,
        number=number,
        first="off",
        off=_batch(off_s),
        budgeted=_batch(budgeted_s),
        answers=4,
        same_answers=4,
    )


def test_both_sides_write_the_same_and_only_one_of_them_drafts(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "pairs.jsonl"
    command += ["--concurrency", "1,3", "--pairs", "2", "--out", str(out), "--json"]
    assert main(command) == EXIT_OK
    report = json.loads(capsys.readouterr().out)
    groups = {(group["workload"], group["concurrency"]): group for group in report["results"]}
    assert set(groups) == {(name, count) for name in ("new", "edits") for count in (1, 3)}
    for (_, count), group in groups.items():
        assert group["pairs"] == 2
        assert group["same_answers"] == group["answers"] == 2 * max(count, 2)
        assert group["ratio"] > 0
        assert group["ratio_lower_bound"] <= group["ratio"]
    assert report["machine"]["dtype"] == resolve_dtype(Settings(), "cpu")
    rows = [json.loads(line) for line in out.read_text().splitlines()[1:]]
    assert {row["first"] for row in rows} == {"off", "budgeted"}
    assert all(row["off"]["drafted"] == 0 for row in rows)
    assert any(row["budgeted"]["drafted"] > 0 for row in rows)


def test_a_run_goes_on_where_it_was_stopped(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "pairs.jsonl"
    command += ["--workload", "edits", "--concurrency", "2", "--out", str(out)]
    assert main([*command, "--pairs", "1"]) == EXIT_OK
    first = out.read_bytes()
    out.write_bytes(first + b'{"workload": "edits", "conc')  # the process was killed here
    assert main([*command, "--pairs", "2"]) == EXIT_OK
    assert out.read_bytes().startswith(first)
    assert len(out.read_bytes().splitlines()) == 3
    assert "4 of 4" in capsys.readouterr().out, "two pairs of two requests"
    assert main([*command, "--max-tokens", "11"]) == EXIT_ERROR
    assert "max_tokens" in capsys.readouterr().err


def test_nothing_is_reused_from_an_earlier_batch(model_dir: Path, cases: Path) -> None:
    profile = load_profile("embedded", model_dir)
    all_cases = list(read_cases(cases))
    tasks = make_tasks("edits", all_cases, profile, max_prompt_tokens=400, limit=2)
    config = EngineConfig(model_path=model_dir, kv_memory_bytes=16 << 20, num_threads=1)
    with BatchEngine(build_engine(config)) as engine:
        runs = [
            engine.run(
                [
                    partial(task.request, name + str(at), max_tokens=8, seed=1, max_draft_tokens=0)
                    for at, task in enumerate(tasks)
                ]
            )
            for name in ("a", "b")
        ]
    assert runs[0].token_ids == runs[1].token_ids
    assert [run.stats.num_cached_tokens for run in runs] == [0, 0]
    assert runs[0].stats.num_prompt_tokens == sum(len(task.prompt.token_ids) for task in tasks)
    assert runs[0].num_steps == runs[1].num_steps > 0


def test_no_more_requests_are_under_way_than_may_be_at_once(model_dir: Path, cases: Path) -> None:
    """One at a time they take as many steps as each of them alone."""
    profile = load_profile("embedded", model_dir)
    all_cases = list(read_cases(cases))
    tasks = make_tasks("edits", all_cases, profile, max_prompt_tokens=400, limit=3)
    config = EngineConfig(model_path=model_dir, kv_memory_bytes=16 << 20, num_threads=1)

    def requests(name: str) -> list[partial[EngineRequest]]:
        return [
            partial(task.request, name + str(at), max_tokens=8, seed=1, max_draft_tokens=0)
            for at, task in enumerate(tasks)
        ]

    with BatchEngine(build_engine(config)) as engine:
        alone = [engine.run([one]) for one in requests("alone")]
        in_turn = engine.run(requests("in turn"), at_once=1)
        together = engine.run(requests("together"))
    assert in_turn.num_steps == sum(run.num_steps for run in alone) > together.num_steps
    assert in_turn.token_ids == together.token_ids == tuple(run.token_ids[0] for run in alone)


def test_drafts_of_new_code_know_nothing_of_what_the_model_reads(
    model_dir: Path, cases: Path
) -> None:
    profile = load_profile("embedded", model_dir)
    all_cases = list(read_cases(cases))
    tasks = make_tasks("new", all_cases, profile, max_prompt_tokens=400, limit=5)
    assert len(tasks) == 5
    for task in tasks:
        assert task.prompt.token_ids != task.prompt.original_token_ids
        assert task.temperature == 1.0
        assert task.predicted_token_ids == ()
        assert len(task.prompt.token_ids) <= 400


def test_the_figures_are_geometric_means_of_the_ratios_of_pairs() -> None:
    pairs = [_pair(0, 1.0, 2.0), _pair(1, 2.0, 1.0), _pair(2, 4.0, 1.0)]
    (result,) = summarise_pairs(pairs)
    assert result["ratio"] == pytest.approx((0.5 * 2.0 * 4.0) ** (1 / 3))
    assert result["least_ratio"] == 0.5
    assert result["tokens_per_s"] == {"off": 300 / 7, "budgeted": 300 / 4}
    assert result["acceptance"] == 0.4
    assert result["answers"] == 12
    assert summarise_pairs([_pair(0, 1.0, 1.0)])[0]["ratio_lower_bound"] == 0


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--concurrency", "1,many"], "whole numbers with commas"),
        (["--concurrency", "0"], "from 1 to 256"),
        (["--pairs", "0"], "from 1 to 1000"),
        (["--requests", "0"], "from 1 to 10000"),
        (["--max-tokens", "1"], "from 2 to"),
        (["--kv-memory", "lots"], "a size is a number"),
        (["--kv-memory", "64KiB"], "give it"),
        (["--max-prompt-tokens", "16"], "raise --max-prompt-tokens"),
    ],
)
def test_bad_options_are_refused_with_a_remedy(
    command: list[str], flags: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, *flags]) == EXIT_ERROR
    assert message in capsys.readouterr().err
