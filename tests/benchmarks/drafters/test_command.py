"""The command: what it prints, its JSON contract, and how it fails."""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec
import pytest

from benchmarks.drafters.command import add_drafters_command, run_drafters

LINES = [f"line_{n} = compute_value({n * 37 % 101}, shared_{n % 6})" for n in range(60)]
MARKER = "# ... existing code ..."


def write_cases(path: Path, num_cases: int = 3) -> Path:
    lines = []
    for number in range(num_cases):
        at = 10 + 9 * number
        expected = [*LINES[:at], "", f"fresh_{number} = 1", "", *LINES[at:]]
        update = [MARKER, *expected[at - 2 : at + 5], MARKER]
        case = {
            "id": f"case-{number}",
            "path": "a.py",
            "original": "\n".join(LINES) + "\n",
            "update": "\n".join(update),
            "expected": "\n".join(expected) + "\n",
            "style": "context" if number else "first",
        }
        lines.append(msgspec.json.encode(case))
    path.write_bytes(b"\n".join(lines))
    return path


def add_case(path: Path, **changes: str) -> None:
    """Add the first case once more, changed."""
    case = msgspec.json.decode(path.read_bytes().splitlines()[0])
    with path.open("ab") as cases:
        cases.write(b"\n" + msgspec.json.encode(case | changes))


def run(*options: str | Path) -> int:
    parser = argparse.ArgumentParser()
    add_drafters_command(parser.add_subparsers())
    return run_drafters(parser.parse_args(["drafters", *map(str, options)]))


def test_json_holds_the_contract(
    tmp_path: Path, tiny_model_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = write_cases(tmp_path / "cases.jsonl")
    assert run("--cases", cases, "--tokenizer-dir", tiny_model_dir, "--json", "--ablation") == 0
    report = msgspec.json.decode(capsys.readouterr().out)
    assert report["cases"] == 3
    assert (report["k"], report["tokenisation"], report["min_tokens"]) == (64, "embedded", 0)
    assert list(report["drafters"]) == ["ours", "ngram", "automaton", "original_cursor"]
    for figures in report["drafters"].values():
        assert set(figures) >= {
            "tokens_per_target_pass",
            "acceptance",
            "drafted_per_pass",
            "propose_us",
        }
        passes = figures["tokens_per_target_pass"]
        assert 1 <= passes["p10"] <= passes["mean"] + 1e-9
        assert 0 < figures["acceptance"] <= 1
        assert 0 < figures["drafted_per_pass"] <= 64
    assert {style: figures["cases"] for style, figures in report["by_style"].items()} == {
        "context": 2,
        "first": 1,
    }
    assert list(report["ablation"]) == ["moved", "renamed"]
    for changed in report["ablation"].values():
        assert list(changed["drafters"]) == [
            *report["drafters"],
            "ours_cursors_only",
            "ours_output_match_8",
        ]


def test_ours_crosses_the_edit_and_the_others_do_not(
    tmp_path: Path, tiny_model_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = write_cases(tmp_path / "cases.jsonl")
    assert run("--cases", cases, "--tokenizer-dir", tiny_model_dir, "--json") == 0
    drafters = msgspec.json.decode(capsys.readouterr().out)["drafters"]
    passes = {name: figures["tokens_per_target_pass"] for name, figures in drafters.items()}
    assert drafters["ours"]["acceptance"] == 1.0
    for rival in ("ngram", "automaton", "original_cursor"):
        assert passes["ours"]["mean"] > passes[rival]["mean"]


def test_the_constraint_is_held_against_speculation_alone(
    tmp_path: Path, tiny_model_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = write_cases(tmp_path / "cases.jsonl")
    add_case(cases, id="beside", expected="\n".join([*LINES, "something_else = 1"]))
    whole = "\n".join(["first = 0", *LINES[:40], *LINES[42:], "last = 1"])
    add_case(cases, id="whole", update=whole, expected=whole)
    options = ("--cases", cases, "--tokenizer-dir", tiny_model_dir)
    assert run(*options, "--constraint", "merge", "--json") == 0
    figures = msgspec.json.decode(capsys.readouterr().out)["constraint"]
    assert figures["kinds"] == {"path": 3, "whole_file": 1, "not_a_path": 1, "no_grammar": 0}
    assert figures["not_a_path"] == ["beside"]
    assert figures["cases"] == 5
    alone, bound = figures["on_paths"]["speculation_alone"], figures["on_paths"]["merge"]
    assert bound["all"] < alone["all"] < figures["speculation_alone"]["all"]
    others = figures["speculation_alone"]["all"] - alone["all"]
    assert figures["merge"]["all"] == bound["all"] + others
    assert figures["times_fewer"] == figures["speculation_alone"]["all"] / figures["merge"]["all"]
    assert 0.9 < figures["forced"] <= 1
    assert run(*options, "--constraint", "merge") == 0
    printed = capsys.readouterr().out
    assert "expected file is a valid merge in 4 of 5, 1 of them sent whole" in printed
    assert "expected file is no path: 1 of 5\n    beside\n" in printed


@pytest.mark.parametrize("profile", ["chat", "fastapply"])
def test_tokens_that_span_lines_are_measured_too(
    tmp_path: Path, tiny_model_dir: Path, capsys: pytest.CaptureFixture[str], profile: str
) -> None:
    cases = write_cases(tmp_path / "cases.jsonl")
    options = ("--cases", cases, "--tokenizer-dir", tiny_model_dir, "--profile", profile)
    assert run(*options, "--constraint", "merge", "--json") == 0
    figures = msgspec.json.decode(capsys.readouterr().out)["constraint"]
    assert figures["kinds"] == {"path": 3, "whole_file": 0, "not_a_path": 0, "no_grammar": 0}
    assert figures["times_fewer"] > 2


def test_without_the_constraint_only_speculation_is_counted(
    tmp_path: Path, tiny_model_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = write_cases(tmp_path / "cases.jsonl")
    options = ("--cases", cases, "--tokenizer-dir", tiny_model_dir, "--json")
    assert run(*options, "--constraint", "none") == 0
    figures = msgspec.json.decode(capsys.readouterr().out)["constraint"]
    assert set(figures) == {"constraint", "scope", "tokens_per_step", "cases", "speculation_alone"}
    assert figures["speculation_alone"]["asking"] <= figures["speculation_alone"]["all"]


def test_the_table_names_every_drafter_and_what_was_left_out(
    tmp_path: Path, tiny_model_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = write_cases(tmp_path / "cases.jsonl")
    options = ("--tokenizer-dir", tiny_model_dir, "--limit", "2", "--k", "16")
    assert run("--cases", cases, *options) == 0
    printed = capsys.readouterr().out
    assert "2 cases" in printed
    assert "k = 16" in printed
    assert "0 shorter_than_min_tokens" in printed
    for name in ("ours", "ngram", "automaton", "original_cursor"):
        assert f"\n{name} " in printed


def test_unusable_cases_are_an_error(
    tmp_path: Path, tiny_model_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = write_cases(tmp_path / "cases.jsonl")
    options = ("--tokenizer-dir", tiny_model_dir)
    assert run("--cases", cases, *options, "--min-tokens", "1000000") == 1
    assert "lower --min-tokens" in capsys.readouterr().err
    cases.write_text("{}")
    assert run("--cases", cases, *options) == 1
    assert "line 1 is not a case" in capsys.readouterr().err
