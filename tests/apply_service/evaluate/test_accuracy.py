"""`apply-service bench accuracy` from its command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from case_files import case_file
from edit_endpoint import EditEndpoint, Scripted, edit_endpoint

from apply_service.cli.main import main
from apply_service.evaluate.cases.case_file import Case, read_cases

SHORT_EDITS = case_file("short_edits")
CASES = list(read_cases(SHORT_EDITS))
CONTRACT_TYPES: dict[str, type] = {
    "cases": int,
    "exact": float,
    "exact_modulo_final_newline": float,
    "exact_ignoring_blank_lines": float,
    "silent_error_rate": float,
    "status": dict,
    "certain_merges": dict,
    "seconds_p50": float,
}


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("APPLY_BENCH_API_KEY", raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    for role in ("AUTHOR", "COMMITTER"):  # a commit's id, and so the update written for it
        monkeypatch.setenv(f"GIT_{role}_DATE", "2026-01-01T12:00:00+00:00")


@pytest.fixture
def endpoint() -> Iterator[EditEndpoint]:
    with edit_endpoint() as served:
        yield served


def report_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["bench", "accuracy", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]


def write_cases(path: Path, *cases: Case) -> str:
    path.write_bytes(b"\n".join(map(msgspec.json.encode, cases)))
    return str(path)


def test_the_merge_alone_fulfils_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    report = report_of(capsys, "--cases", str(SHORT_EDITS), "--merge-only")
    for name, kind in CONTRACT_TYPES.items():
        assert isinstance(report[name], kind), name
    assert report["cases"] == len(CASES)
    assert report["exact"] >= 0.8
    assert set(report["certain_merges"]) == {"claimed", "exact"}
    assert sum(report["status"].values()) == pytest.approx(1, abs=1e-3)
    assert report["tokens_per_target_pass"] is None


def test_the_limit_takes_the_first_cases(capsys: pytest.CaptureFixture[str]) -> None:
    report = report_of(capsys, "--cases", str(SHORT_EDITS), "--merge-only", "--limit", "3")
    assert report["cases"] == 3


def test_the_merge_alone_needs_no_torch() -> None:
    script = (
        "import sys; from apply_service.cli.main import main;"
        f" main(['bench', 'accuracy', '--cases', {str(SHORT_EDITS)!r}, '--merge-only', '--json']);"
        " sys.exit('torch' in sys.modules or 'litestar' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_misses_are_written_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = msgspec.structs.replace(CASES[0], id="wrong", expected="something else\n")
    path = write_cases(tmp_path / "cases.jsonl", wrong, CASES[1])
    assert main(["bench", "accuracy", "--cases", path, "--merge-only"]) == 0
    text = capsys.readouterr().out
    assert "accuracy-failures" in text
    assert "silent errors" in text
    assert [p.name[:10] for p in Path("accuracy-failures").iterdir()].count("miss-0001-") == 1


def test_an_endpoint_is_asked_for_every_case(
    endpoint: EditEndpoint, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APPLY_BENCH_API_KEY", "secret")
    answers = [Scripted(200, {"mergedCode": case.expected}) for case in CASES[:2]]
    endpoint.answers("/v1/code/apply", *answers, Scripted(500, {"error": "broken"}))
    url = f"{endpoint.url}/v1/code/apply"
    report = report_of(capsys, "--cases", str(SHORT_EDITS), "--limit", "4", "--against", url)
    assert report["status_counts"]["applied"] == 2
    assert report["status_counts"]["failed"] == 2
    assert report["exact"] == 0.5
    assert {received.headers["Authorization"] for received in endpoint.received} == {
        "Bearer secret"
    }


def test_an_unknown_endpoint_must_be_named(
    endpoint: EditEndpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["bench", "accuracy", "--cases", str(SHORT_EDITS), "--against", endpoint.url]
    assert main(arguments) == 1
    assert "--api" in capsys.readouterr().err


def test_a_repository_without_a_fitting_commit_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for content in (b"\0one", b"\0two"):
        (tmp_path / "a.bin").write_bytes(content)
        for command in (["add", "."], [*identity, "commit", "--quiet", "-m", "change"]):
            subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    assert main(["bench", "accuracy", "--git", str(tmp_path), "--merge-only"]) == 1
    assert "1 binary" in capsys.readouterr().err


def test_a_repository_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    repository = tmp_path / "repository"
    subprocess.run(["git", "init", "--quiet", str(repository)], check=True)
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    text = "".join(f"def function_{n}():\n    return {n}\n\n\n" for n in range(12))
    for content in (text, text.replace("return 4\n", "return 44\n")):
        (repository / "a.py").write_text(content)
        for command in (["add", "."], [*identity, "commit", "--quiet", "-m", "change"]):
            subprocess.run(["git", "-C", str(repository), *command], check=True)
    report = report_of(capsys, "--git", str(repository), "--merge-only")
    assert (report["cases"], report["exact"]) == (1, 1.0)
    assert report["by_language"]["python"]["exact"] == 1


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--cases", "a", "--git", "b"],
        ["--cases", "a", "--merge-only", "--no-fallback"],
        ["--cases", "a", "--merge-only", "--against", "http://h"],
        ["--cases", "a", "--limit", "0"],
        ["--cases", "a", "--api", "other"],
    ],
)
def test_arguments_that_make_no_sense(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["bench", "accuracy", *arguments])
    assert "usage" in capsys.readouterr().err
