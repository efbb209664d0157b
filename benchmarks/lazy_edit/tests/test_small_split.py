"""The committed split: what it promises, and how systems that know nothing fare."""

import re
from collections import Counter
from pathlib import Path

import pytest
from lazy_edit_bench.cli import main
from lazy_edit_bench.corpus import load_split
from lazy_edit_bench.figures import summarise
from lazy_edit_bench.kinds import KINDS
from lazy_edit_bench.near_duplicates import without_duplicates
from lazy_edit_bench.run import run_tasks
from lazy_edit_bench.systems.degenerate import Degenerate
from lazy_edit_bench.systems.registry import DEGENERATE
from lazy_edit_bench.task import DIALECTS, read_tasks, write_jsonl


@pytest.fixture(scope="module")
def small():
    return load_split("small")


def test_all_languages_kinds_dialects_and_treatments_are_there(small):
    assert len(small) == 481
    assert len(without_duplicates(small)) == len(small)
    assert len({task.language for task in small}) >= 14
    assert {task.dialect for task in small} == set(DIALECTS)
    assert set(KINDS) <= {task.kind for task in small}
    assert {task.treat for task in small} == {"apply", "ask", "refuse"}
    assert all(task.checked for task in small)
    assert not any(task.source for task in small), "a file of others is committed"


def test_each_stale_trap_is_there(small):
    traps = Counter(task.trap for task in small)
    assert all(traps[name] >= 3 for name in ("shifted", "gone", "repeated", "crlf", "unended"))


@pytest.mark.parametrize("name", DEGENERATE)
def test_no_degenerate_system_looks_good(name, small):
    figures = summarise(run_tasks(Degenerate(name), small, split="small").rows)
    assert figures.right.value < 0.15
    assert figures.after_question.value < 0.15
    if not name.startswith("always"):
        assert figures.silent_harmful.value > 0.85


def test_a_run_is_scored_compared_and_reported(small, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "tasks.jsonl", small[:60])
    assert read_tasks(tmp_path / "tasks.jsonl") == small[:60]
    split = ["--split", "tasks.jsonl"]
    for system in ("exact-replace", "do-nothing"):
        assert main(["run", "--system", system, *split, "--out", f"{system}.json"]) == 0
    files = ["exact-replace.json", "do-nothing.json"]
    assert main(["score", *files, *split, "--by", "kind"]) == 0
    assert main(["compare", *files, *split]) == 0
    assert main(["report", files[1], *split, "--out", "report.html"]) == 0
    assert main(["leaderboard", *files, *split, "--out", "board.html"]) == 0
    said = capsys.readouterr().out
    assert "A difference of 1 point is seen in" in said
    for page in ("report.html", "board.html"):
        text = Path(page).read_text(encoding="utf-8")
        assert "<svg" in text
        assert not re.search("<(script|link|img|iframe)", text)
    assert "silent harmful:" in Path("report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "--system", "nobody"], "no system 'nobody'"),
        (["run", "--system", "morph"], "--url"),
        (["run", "--system", "jsdiff"], "lazy-edit-bench install jsdiff"),
        (["list", "--split", "huge"], "no split 'huge'"),
        (["score", "missing.json"], "no result file"),
        (["list", "--split", "missing.jsonl"], "cannot be read"),
        (["generate", "--seed", "1", "--files", ".", "--out", "x.jsonl"], "gave no edit"),
    ],
)
def test_bad_input_says_what_to_do(arguments, said, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["--home", str(tmp_path), *arguments]) == 2
    assert said in capsys.readouterr().err


def test_full_needs_its_files(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("lazy_edit_bench.generator.written_edits", list)
    assert main(["--home", str(tmp_path), "list", "--split", "full"]) == 2
    assert "lazy-edit-bench fetch" in capsys.readouterr().err
