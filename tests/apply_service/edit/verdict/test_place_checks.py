"""What the verdict says of a result's place."""

from __future__ import annotations

import pytest

from apply_service.edit.place.merge import MIN_CERTAINTY, MergePlan
from apply_service.edit.read.segment import Segment, SegmentLine, Snippet
from apply_service.edit.verdict.verdict import Verdict, judge

ORIGINAL = ("first = 1", "limit = 10", "second = 2", "limit = 10", "third = 3", "", "fourth = 4")
SNIPPET = Snippet(format="lazy", segments=(Segment(lines=(SegmentLine("new = 0", 2),)),))
UPPER = (*ORIGINAL[:2], "new = 0", *ORIGINAL[2:])
LOWER = (*ORIGINAL[:4], "new = 0", *ORIGINAL[4:])


def plan(certainty: float, *merges: tuple[str, ...]) -> MergePlan:
    weights = tuple(-1.0 - number for number in range(len(merges)))
    return MergePlan(original_lines=ORIGINAL, merges=merges, weights=weights, certainty=certainty)


def judged(found: MergePlan, result: tuple[str, ...], **options: object) -> Verdict:
    return judge(ORIGINAL, SNIPPET, result, plan=found, **options)  # type: ignore[arg-type]


def codes(verdict: Verdict) -> list[str]:
    return [finding.code for finding in verdict.findings]


@pytest.mark.parametrize(
    ("certainty", "status"), [(MIN_CERTAINTY, "applied"), (MIN_CERTAINTY - 0.01, "needs_review")]
)
def test_the_likeliest_merge_is_applied_if_it_is_certain(certainty: float, status: str) -> None:
    assert judged(plan(certainty, UPPER, LOWER), UPPER).status == status


def test_a_doubt_names_the_first_line_that_another_merge_has() -> None:
    verdict = judged(plan(0.62, UPPER, LOWER), UPPER)
    assert codes(verdict) == ["ambiguous_place"]
    (finding,) = verdict.findings
    assert finding.line == 3
    assert finding.message == (
        "the result is the likeliest merge, right with 62 %; another one has `second = 2` on line"
        " 3, where it has `new = 0`"
    )


def test_a_doubt_names_a_blank_line_as_such() -> None:
    above, below = ("new = 0", "", *ORIGINAL), ("", "new = 0", *ORIGINAL)
    (finding,) = judged(plan(0.6, above, below), above).findings
    assert "another one has a blank line on line 1, where it has `new = 0`" in finding.message


def test_a_less_likely_merge_is_in_doubt_however_certain_the_first_one_is() -> None:
    verdict = judged(plan(0.99, UPPER, LOWER), LOWER)
    assert (verdict.status, codes(verdict)) == ("needs_review", ["ambiguous_place"])
    assert "a less likely merge" in verdict.findings[0].message


def test_a_doubt_about_the_only_merge_says_so() -> None:
    verdict = judged(plan(0.3, UPPER), UPPER)
    assert codes(verdict) == ["ambiguous_place"]
    assert "no other place" in verdict.findings[0].message


def test_a_choice_settles_the_doubt_if_all_merges_were_in_sight() -> None:
    found = plan(0.5, UPPER, LOWER)
    for result in (UPPER, LOWER):
        seen = found.open_placements
        assert codes(judged(found, result, confirmed=seen)) == []
        assert codes(judged(found, result, confirmed=[*seen][:1])) == ["ambiguous_place"]


def test_blank_lines_are_no_other_merge() -> None:
    spaced = (*UPPER[:-2], UPPER[-1])
    assert "not_a_merge" not in codes(judged(plan(0.99, UPPER, LOWER), UPPER))
    assert judged(plan(0.99, UPPER, LOWER), spaced).status != "applied"


def test_a_result_that_is_no_merge_names_the_first_line_that_differs() -> None:
    found = plan(0.99, UPPER, LOWER)
    wrong = (*UPPER[:-1], "fourth = 5")
    finding = judged(found, wrong).findings[-1]
    assert (finding.code, finding.line) == ("not_a_merge", len(wrong))
    finding = judged(found, UPPER[:-1]).findings[-1]
    assert (finding.code, finding.line) == ("not_a_merge", None)
    assert finding.message.endswith("ends")
