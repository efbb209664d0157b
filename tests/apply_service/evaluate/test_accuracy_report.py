from __future__ import annotations

from dataclasses import replace

import pytest

from apply_service.evaluate.accuracy_report import format_accuracy_report, summarise_accuracy
from apply_service.evaluate.case_statistics import wilson_interval
from apply_service.evaluate.cases.case_file import Case
from apply_service.evaluate.cases.case_result import CaseAnswer, CaseResult, ResultStatus

CONTRACT = {
    "cases",
    "exact",
    "exact_modulo_final_newline",
    "exact_ignoring_blank_lines",
    "silent_error_rate",
    "status",
    "certain_merges",
    "seconds_p50",
    "tokens_per_target_pass",
}


def result(
    status: ResultStatus = "applied",
    text: str = "a\nb\n",
    *,
    seconds: float = 1.0,
    tokens: tuple[int, int] | None = None,
    language: str = "python",
    is_certain: bool = False,
    must_refuse: bool = False,
) -> CaseResult:
    case = Case(
        id="x",
        path="x.py",
        original="a\n",
        update="b",
        expected="a\nb\n",
        style="context",
        must_refuse=must_refuse,
    )
    answer = CaseAnswer(
        status=status,
        text=text,
        seconds=seconds,
        source="model",
        num_output_tokens=tokens[0] if tokens else None,
        num_target_passes=tokens[1] if tokens else None,
    )
    return CaseResult(case, answer, language=language, is_certain=is_certain)


def mixed_results() -> list[CaseResult]:
    return [
        *[result(seconds=number, is_certain=True, tokens=(10, 2)) for number in range(6)],
        result(text="a\nc\n", is_certain=True),
        result(text="a\nb", language="go"),
        result("needs_review", text="a\n\nb\n"),
        result("rejected", tokens=(40, 3)),
        result("failed", text="", seconds=99.0),
        result("unchanged", text="a\n"),
        result("needs_review", must_refuse=True),
        result("applied", must_refuse=True),
    ]


def test_shares_are_of_the_cases_that_have_an_answer() -> None:
    report = summarise_accuracy(mixed_results())
    assert set(report) >= CONTRACT
    assert report["cases"] == 12
    assert report["exact"] == pytest.approx(6 / 12)
    assert report["exact_modulo_final_newline"] == pytest.approx(7 / 12, abs=1e-4)
    assert report["exact_ignoring_blank_lines"] == pytest.approx(8 / 12, abs=1e-4)
    assert report["silent_error_rate"] == pytest.approx(2 / 12, abs=1e-4)
    assert report["silent_loss_rate"] == pytest.approx(1 / 12, abs=1e-4)
    assert report["coverage"] == pytest.approx(8 / 12, abs=1e-4)
    assert report["must_refuse"] == {"cases": 2, "right": 0.5}


def test_statuses_add_up() -> None:
    report = summarise_accuracy(mixed_results())
    assert sum(report["status_counts"].values()) == report["cases"]
    assert sum(report["status"].values()) == pytest.approx(1, abs=1e-3)
    assert report["status"]["failed"] == pytest.approx(1 / 12, abs=1e-4)


def test_unique_anchors_are_judged_where_they_are_claimed() -> None:
    report = summarise_accuracy(mixed_results())
    assert report["certain_merges"] == {
        "claimed": pytest.approx(7 / 12, abs=1e-4),
        "exact": pytest.approx(6 / 7, abs=1e-4),
    }


def test_counts_come_with_their_interval() -> None:
    report = summarise_accuracy(mixed_results())
    assert report["counts"]["silent_errors"] == {"count": 2, "n": 12}
    assert report["wilson_95"]["silent_errors"] == pytest.approx(wilson_interval(2, 12), abs=1e-4)
    assert report["counts"]["rejected_though_exact"]["count"] == 1


def test_seconds_leave_failed_requests_out_and_passes_are_pooled() -> None:
    report = summarise_accuracy(mixed_results())
    assert report["seconds_p50"] == 1.0
    assert report["seconds_p90"] == 4.0
    assert report["tokens_per_target_pass"] == pytest.approx(100 / 15, abs=0.01)


def test_what_was_left_to_a_bound_model_is_counted() -> None:
    answers = [(100, 1, 100, 0), (200, 3, 198, 2), (100, 2, 99, 1)]
    results = []
    for num_tokens, passes, forced, decisions in answers:
        free = result(tokens=(num_tokens, passes))
        answer = replace(free.answer, num_forced_tokens=forced, num_decisions=decisions)
        results.append(replace(free, answer=answer))
    report = summarise_accuracy([*results, result(tokens=(500, 9))])
    bound = report["bound"]
    assert (bound["cases"], bound["forced"]) == (3, pytest.approx(397 / 400))
    assert bound["decisions"] == {"mean": 1.0, "median": 1, "p90": 2, "max": 2, "all": 3}
    assert (bound["target_passes"]["mean"], bound["target_passes"]["all"]) == (2.0, 6)
    assert (
        "3 cases bound to the valid merges: 99.25% of the tokens forced"
        in format_accuracy_report(report)
    )
    assert summarise_accuracy(mixed_results())["bound"] is None


def test_groups_count_exact_and_silent() -> None:
    report = summarise_accuracy(mixed_results())
    assert report["by_language"]["go"] == {
        "cases": 1,
        "exact": 0,
        "applied": 1,
        "silent_errors": 1,
    }
    assert list(report["by_edit_size"]) == ["1-5"]
    assert report["by_style"]["context"]["cases"] == 12


def test_without_cases_shares_are_unknown() -> None:
    report = summarise_accuracy([])
    assert report["exact"] is None
    assert report["seconds_p50"] is None
    assert report["tokens_per_target_pass"] is None
    assert "no case was answered" in format_accuracy_report(report)


def test_the_text_shows_the_silent_error_rate_beside_the_coverage() -> None:
    lines = format_accuracy_report(summarise_accuracy(mixed_results())).splitlines()
    silent = next(number for number, line in enumerate(lines) if line.startswith("silent errors"))
    assert "2 of 12" in lines[silent]
    assert "16.7%" in lines[silent]
    assert any("applied" in line and "8 of 12" in line for line in lines[silent : silent + 3])
    assert any("must refuse" in line and "1 of 2" in line for line in lines)
    assert any("rejected though exact" in line for line in lines)
