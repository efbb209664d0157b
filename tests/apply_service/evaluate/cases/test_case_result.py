from __future__ import annotations

import pytest

from apply_service.evaluate.cases.case_file import Case
from apply_service.evaluate.cases.case_result import CaseAnswer, CaseResult, ResultStatus

ORIGINAL = "import os\n\ndef a():\n    return 1\n"
EXPECTED = "import os\n\ndef a():\n    return 2\n"


def result(
    text: str | None,
    status: ResultStatus = "applied",
    *,
    expected: str = EXPECTED,
    also: tuple[str, ...] = (),
    must_refuse: bool = False,
) -> CaseResult:
    case = Case(
        id="case",
        path="a.py",
        original=ORIGINAL,
        update="",
        expected=expected,
        also=also,
        must_refuse=must_refuse,
    )
    return CaseResult(case, CaseAnswer(status=status, text=text), language="python")


def test_the_expected_file_is_exact_by_every_measure() -> None:
    exact = result(EXPECTED)
    assert exact.is_exact
    assert exact.is_exact_modulo_final_newline
    assert exact.is_exact_ignoring_blank_lines
    assert not exact.is_silent_error
    assert not exact.is_miss


@pytest.mark.parametrize(
    ("text", "modulo_newline", "ignoring_blank"),
    [
        (EXPECTED[:-1], True, True),
        (EXPECTED.replace("\n\n", "\n"), False, True),
        (EXPECTED + "\n", False, True),
        (EXPECTED.replace("2", "3"), False, False),
        (EXPECTED.replace("    return", "  return"), False, False),
    ],
)
def test_near_misses(text: str, modulo_newline: bool, ignoring_blank: bool) -> None:
    near = result(text)
    assert not near.is_exact
    assert near.is_exact_modulo_final_newline == modulo_newline
    assert near.is_exact_ignoring_blank_lines == ignoring_blank
    assert near.is_silent_error


def test_another_file_that_is_as_right_is_exact() -> None:
    other = EXPECTED.replace("2", "3")
    both = result(other, also=(EXPECTED[:-1], other))
    assert both.is_exact
    assert not both.is_silent_error
    assert both.case.results == (EXPECTED, EXPECTED[:-1], other)
    assert result(EXPECTED + "\n", also=(other,)).is_exact_modulo_final_newline is False
    assert result(other[:-1], also=(other,)).is_exact_modulo_final_newline
    assert result("\n" + other, also=(other,)).is_exact_ignoring_blank_lines


def test_a_crlf_at_the_end_is_one_newline() -> None:
    assert result("a\r\nb\r\n", expected="a\r\nb").is_exact_modulo_final_newline
    assert not result("a\r\nb\r", expected="a\r\nb").is_exact_modulo_final_newline


def test_a_loss_is_a_line_that_the_answer_lacks() -> None:
    lost = result(EXPECTED.replace("import os\n", ""))
    assert lost.lost_lines == ("import os",)
    assert lost.is_silent_loss
    repeated = result(EXPECTED + "import os\n")
    assert repeated.is_silent_error
    assert not repeated.is_silent_loss
    assert not result(EXPECTED.replace("    return", "return")).is_silent_loss


@pytest.mark.parametrize("status", ["needs_review", "unchanged", "rejected", "failed"])
def test_only_applied_results_can_be_silent_errors(status: ResultStatus) -> None:
    assert not result("wrong", status).is_silent_error


def test_what_was_rejected_counts_as_not_returned() -> None:
    refused = result(EXPECTED, "rejected")
    assert refused.is_false_alarm
    assert not refused.is_exact
    assert refused.is_miss
    assert not result("wrong", "rejected").is_false_alarm


@pytest.mark.parametrize(
    ("status", "is_right"),
    [
        ("rejected", True),
        ("needs_review", True),
        ("applied", False),
        ("unchanged", False),
        ("failed", False),
    ],
)
def test_what_must_be_refused(status: ResultStatus, is_right: bool) -> None:
    answered = result(ORIGINAL, status, expected=ORIGINAL, must_refuse=True)
    assert answered.is_refused_or_flagged == is_right
    assert answered.is_miss != is_right


def test_the_size_of_an_edit_is_removed_plus_added_lines() -> None:
    assert result(EXPECTED).num_changed_lines == 2
