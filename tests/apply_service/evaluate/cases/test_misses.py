from __future__ import annotations

from pathlib import Path

from apply_service.evaluate.cases.case_file import Case
from apply_service.evaluate.cases.case_result import CaseAnswer, CaseResult, ResultStatus
from apply_service.evaluate.cases.misses import write_misses


def result(
    case_id: str, text: str | None, status: ResultStatus = "applied", must_refuse: bool = False
) -> CaseResult:
    case = Case(
        id=case_id,
        path="a.py",
        original="one\ntwo\n",
        update="one\nnew",
        expected="one\nnew\ntwo\n",
        must_refuse=must_refuse,
    )
    answer = CaseAnswer(status=status, text=text, notes=("warning place_guessed: perhaps",))
    return CaseResult(case, answer, language="python")


def test_every_miss_has_a_file_with_silent_errors_first(tmp_path: Path) -> None:
    folder = tmp_path / "misses"
    results = [
        result("right", "one\nnew\ntwo\n"),
        result("refused", None, "rejected"),
        result("wrong/../place", "new\none\ntwo\n"),
        result("lost", "one\nnew\n", "needs_review"),
        result("no answer", "one\n", "applied", must_refuse=True),
    ]
    assert write_misses(results, folder) == 4
    assert sorted(path.name for path in folder.iterdir()) == [
        "miss-0001-silent-wrong_.._place.diff",
        "miss-0002-not_refused-no_answer.diff",
        "miss-0003-needs_review-lost.diff",
        "miss-0004-rejected-refused.diff",
    ]
    lost = (folder / "miss-0003-needs_review-lost.diff").read_text()
    assert "# warning place_guessed: perhaps" in lost
    assert "# expected and lost: two" in lost
    assert "\n-two\n" in lost
    assert "\n+new\n" in lost


def test_an_earlier_run_is_replaced_and_other_files_stay(tmp_path: Path) -> None:
    write_misses([result("a", "x"), result("b", "x")], tmp_path)
    (tmp_path / "notes.diff").write_text("mine")
    assert write_misses([result("c", "x")], tmp_path) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "miss-0001-silent-c.diff",
        "notes.diff",
    ]


def test_without_misses_no_folder_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "misses"
    assert write_misses([result("right", "one\nnew\ntwo\n")], folder) == 0
    assert not folder.exists()
