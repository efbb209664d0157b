"""`bench judge` and `bench writer`: their worth in figures, and `apply` with each of them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from judge_server import JudgeServer, Options, judge_server
from writer_server import writer_server

from apply_service.cli.main import main
from apply_service.evaluate.cases.case_file import Case, read_cases
from apply_service.evaluate.judging import (
    JudgedDoubt,
    find_doubts,
    fitted_accuracy,
    format_report,
    summarise,
)

UPDATE = "# ...\n    def close(self):\n        log(self)\n        self.fd = None\n# ...\n"
NUM_CASES = 4


def two_classes(number: int) -> str:
    body = "    def close(self):\n        self.fd = None\n"
    return f"class A{number}:\n{body}\n\nclass B{number}:\n{body}"


def case_of(number: int) -> Case:
    """An edit that may be meant in either class; the second one is right where `number` is odd."""
    original = two_classes(number)
    line = "        self.fd = None\n"
    places = [match.start() for match in re.finditer(line, original)]
    place = places[number % 2]
    return Case(
        id=str(number),
        path="a.py",
        original=original,
        update=UPDATE,
        expected=original[:place] + "        log(self)\n" + original[place:],
    )


CASES = [case_of(number) for number in range(NUM_CASES)]


@pytest.fixture(scope="module")
def case_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("judging") / "cases.jsonl"
    certain = {**to_json(CASES[0]), "id": "certain", "update": CASES[0].expected}
    lines = [*map(to_json, CASES), certain]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert len(list(read_cases(path))) == NUM_CASES + 1
    return path


def to_json(case: Case) -> dict[str, Any]:
    return {name: getattr(case, name) for name in ("id", "path", "original", "update", "expected")}


def knows(options: Options) -> str:
    """The letter of the class that is meant, told by the number in its name."""
    for letter, text in options.items():
        found = re.search(r"in ([AB])(\d+)\.close", text)
        if found is not None and (found[1] == "B") == (int(found[2]) % 2 == 1):
            return letter
    return list(options)[-1]


def judged() -> list[JudgedDoubt]:
    """The doubts, each with its truth named."""
    return [JudgedDoubt(one, one.truth, True, "agreed", 0.5) for one in find_doubts(CASES)]


def test_doubts_know_their_truth() -> None:
    doubts = list(find_doubts(CASES))
    assert len(doubts) == NUM_CASES
    for number, doubt in enumerate(doubts):
        assert doubt.truth is not None
        assert doubt.choices[doubt.truth].symbol == f"{'AB'[number % 2]}{number}.close"
    (refused,) = find_doubts([Case(**{**to_json(CASES[0]), "must_refuse": True})])
    assert refused.truth is None


def test_a_judge_that_is_always_right_is_believed_and_one_that_never_is_not() -> None:
    right = judged()
    wrong = [
        JudgedDoubt(one.doubt, 1 - (one.doubt.truth or 0), True, "other", 0.5) for one in right
    ]
    assert fitted_accuracy(right) > 0.95
    assert fitted_accuracy(wrong) == 0.5
    silent = [JudgedDoubt(one.doubt, None, False, "failed", 0.1) for one in right]
    assert fitted_accuracy(silent) == 0.5


def test_figures_say_what_would_be_applied() -> None:
    report = summarise(judged(), 0.5)
    assert (report["answered"], report["right"]) == (NUM_CASES, NUM_CASES)
    assert report["surprise_with"] < report["surprise_without"]
    at_half, at_best = report["settled"]
    assert at_half == {"judge_accuracy": 0.5, "asked": NUM_CASES}
    assert at_best["right"] == NUM_CASES
    assert "wrong" not in at_best
    text = format_report({"role": "judge", "cases": 9, "form": "choice", **report})
    assert f"applied and right {NUM_CASES}, applied and wrong 0, still asked 0" in text


def test_the_command_measures_a_server(case_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with judge_server("vllm") as server:
        server.decide = knows
        flags = ["--cases", str(case_file), "--judge-url", server.url]
        assert main(["bench", "judge", *flags, "--json"]) == 0
        report = json.loads(capsys.readouterr().out)
        assert (report["cases"], report["doubts"]) == (NUM_CASES + 1, NUM_CASES)
        assert (report["right"], report["form"]) == (NUM_CASES, "choice")
        assert report["judge_accuracy"] > 0.9
        server.decide = lambda options: list(options)[-1]
        assert main(["bench", "judge", *flags]) == 0
    text = capsys.readouterr().out
    assert f"none {NUM_CASES}" in text
    assert "judge_accuracy = 0.50" in text


@pytest.mark.parametrize(
    ("flags", "code", "message"),
    [
        ([], 2, "--judge-url"),
        (["--judge-url", "nowhere"], 2, "such as http://127.0.0.1"),
        (["--judge-url", "http://127.0.0.1:9"], 2, "the judge cannot be asked"),
        (["--judge-timeout-s", "0"], 2, "judge_timeout_s"),
    ],
)
def test_a_judge_that_cannot_be_asked_is_said(
    case_file: Path, capsys: pytest.CaptureFixture[str], flags: list[str], code: int, message: str
) -> None:
    assert main(["bench", "judge", "--cases", str(case_file), *flags]) == code
    assert message in capsys.readouterr().err


def writes(body: dict[str, Any], ways: Sequence[str] | None) -> str:
    """The way in the class that is meant, told by the number in its name."""
    assert ways is not None
    number = re.search(r"class A(\d+):", ways[0])
    assert number is not None
    is_b = int(number[1]) % 2 == 1
    return next(way for way in ways if ("log(self)" in way.partition("class B")[2]) == is_b)


def test_the_command_measures_a_writer(case_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with writer_server("vllm", writes) as server:
        flags = ["--cases", str(case_file), "--writer-url", server.url]
        assert main(["bench", "writer", *flags, "--json"]) == 0
        report = json.loads(capsys.readouterr().out)
        assert (report["doubts"], report["right"], report["wrote_right"]) == (NUM_CASES,) * 3
        assert (report["form"], report["results"]) == ("structured_outputs", {"bound": NUM_CASES})
        assert report["writer_accuracy"] > 0.9
        server.write = lambda body, ways: "no merge"
        assert main(["bench", "writer", *flags]) == 0
    text = capsys.readouterr().out
    assert f"unreadable {NUM_CASES}" in text, "failures do not keep it from being asked"
    assert "writer_accuracy = 0.50" in text
    assert "the text itself is right for 0" in text


def test_an_edit_on_the_command_line_has_a_writer(
    edit: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    file, update = edit
    flags = ["apply", str(file), "--update", str(update), "--path", "a.py", "--write"]
    flags += ["--writer-accuracy", "0.97", "--writer-url"]
    with writer_server("llama.cpp", writes) as server:
        server.spoil = lambda body: (503, b"")
        assert main([*flags, server.url]) == 3, "it is a question, and no model is loaded"
        assert file.read_text() == CASES[1].original
        assert "--resolve" in capsys.readouterr().err
        server.spoil = lambda body: None
        assert main([*flags, server.url]) == 0
    assert file.read_text() == CASES[1].expected


def test_cases_without_a_doubt_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(json.dumps({**to_json(CASES[0]), "update": CASES[0].expected}))
    assert main(["bench", "judge", "--cases", str(path), "--judge-url", "http://x"]) == 1
    assert "in doubt" in capsys.readouterr().err


@pytest.fixture
def edit(tmp_path: Path) -> tuple[Path, Path]:
    file, update = tmp_path / "a.py", tmp_path / "update.txt"
    file.write_text(CASES[1].original)
    update.write_text(UPDATE)
    return file, update


def apply_flags(edit: tuple[Path, Path], server: JudgeServer) -> list[str]:
    file, update = edit
    flags = ["apply", str(file), "--update", str(update), "--path", "a.py", "--write"]
    return [*flags, "--judge-url", server.url, "--judge-accuracy", "0.97"]


def test_an_edit_on_the_command_line_has_a_judge(edit: tuple[Path, Path]) -> None:
    with judge_server("ollama") as server:
        server.decide = knows
        assert main(apply_flags(edit, server)) == 0
    assert edit[0].read_text() == CASES[1].expected


def test_on_the_command_line_a_judge_that_is_down_is_a_question(
    edit: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    with judge_server("ollama") as server:
        pass
    assert main(apply_flags(edit, server)) == 3
    assert edit[0].read_text() == CASES[1].original
    assert "--resolve" in capsys.readouterr().err
