"""What the verdict says of a result's place, with plans of small files."""

from __future__ import annotations

from dataclasses import replace

import pytest

from apply_service.edit.place.merge import MergePlan, plan_merge
from apply_service.edit.place.placement import Placement
from apply_service.edit.read.segment import Segment, SegmentLine, Snippet
from apply_service.edit.read.snippet import read_snippet
from apply_service.edit.syntax.syntax import parse
from apply_service.edit.verdict.place_checks import (
    BLANK_MARGIN,
    BORDER_MARGIN,
    KEEPING_MARGIN,
    MANY_LINES,
    PLACE_MARGIN,
)
from apply_service.edit.verdict.verdict import Verdict, judge

ORIGINAL = ["first = 1", "limit = 10", "second = 2", "limit = 10", "third = 3", "", "fourth = 4"]
SNIPPET = Snippet(format="lazy", segments=(Segment(lines=(SegmentLine("new = 0", 2),)),))


def judged(original: list[str], update: list[str], result: list[str]) -> Verdict:
    snippet = read_snippet(update, original, language="python")
    plan = plan_merge(original, snippet, language="python")
    return judge(original, snippet, result, plan=plan)


def codes(verdict: Verdict) -> list[str]:
    return [finding.code for finding in verdict.findings]


def placed(start: int, end: int, weight: float, *lines: str) -> Placement:
    return Placement(
        segment=0,
        start=start,
        end=end,
        lines=lines or ("new = 0",),
        weight=weight,
        reason="context",
    )


def verdict_of(chosen: Placement, *rivals: Placement) -> Verdict:
    """The verdict on `chosen` when these are all the placements there are."""
    ordered = sorted([chosen, *rivals], key=lambda one: -one.weight)
    plan = MergePlan(original_lines=ORIGINAL, candidates=(tuple(ordered),), order=(0,))
    result = [*ORIGINAL[: chosen.start], *chosen.lines, *ORIGINAL[chosen.end :]]
    return judge(ORIGINAL, SNIPPET, result, plan=plan)


def test_where_nothing_changes_no_other_place_is_meant() -> None:
    idle = placed(1, 2, 1.0, "limit = 10")
    assert verdict_of(idle, placed(3, 4, 1.0, "limit = 10")).status == "unchanged"
    assert verdict_of(idle, placed(5, 5, 1.0, "limit = 10")).status == "unchanged", "twice"
    assert codes(verdict_of(idle, placed(2, 3, 1.0, "limit = 10"))) == ["ambiguous_place"]


def test_an_equal_place_is_named_with_its_lines() -> None:
    update = ["# ...", "limit = 10", "new = 0", "# ..."]
    for place in (2, 4):
        result = [*ORIGINAL[:place], "new = 0", *ORIGINAL[place:]]
        verdict = judged(ORIGINAL, update, result)
        assert (verdict.status, codes(verdict)) == ("needs_review", ["ambiguous_place"])
        finding = verdict.findings[0]
        assert "place of line 2" in finding.message
        assert "place of line 4" in finding.message
        assert finding.hint.startswith("add an unchanged line")


def test_neighbouring_segments_rule_a_place_out() -> None:
    update = ["# ...", "second = 2", "# ...", "limit = 10", "new = 0", "# ..."]
    result = [*ORIGINAL[:4], "new = 0", *ORIGINAL[4:]]
    assert "ambiguous_place" not in codes(judged(ORIGINAL, update, result))


def test_a_result_that_is_no_merge_names_the_first_line_that_differs() -> None:
    update = ["# ...", "second = 2", "new = 0", "limit = 10", "# ..."]
    result = [*ORIGINAL[:3], "new = 0", *ORIGINAL[3:]]
    assert judged(ORIGINAL, update, result).status == "applied"
    wrong = [*result[:-1], "fourth = 5"]
    finding = judged(ORIGINAL, update, wrong).findings[-1]
    assert (finding.code, finding.line) == ("not_a_merge", len(wrong))
    finding = judged(ORIGINAL, update, result[:-1]).findings[-1]
    assert (finding.code, finding.line) == ("not_a_merge", None)
    assert finding.message.endswith("ends")


@pytest.mark.parametrize(
    ("rival", "is_doubtful"),
    [
        (placed(4, 5, 5.0 - PLACE_MARGIN + 0.1), True),
        (placed(4, 5, 5.0 - PLACE_MARGIN - 0.1), False),
        (placed(2, 4, 5.0 + BORDER_MARGIN + 0.1), True),
        (placed(2, 4, 5.0 + BORDER_MARGIN - 0.1), False),
        (placed(2, 2, 5.0 + BORDER_MARGIN - 0.1, "second = 2", "new = 0"), True),
    ],
    ids=["elsewhere", "elsewhere far behind", "borders", "borders not enough", "touching"],
)
def test_doubt_depends_on_how_well_the_rivals_fit(rival: Placement, is_doubtful: bool) -> None:
    verdict = verdict_of(placed(2, 3, 5.0), rival)
    assert codes(verdict) == (["ambiguous_place"] if is_doubtful else [])
    assert verdict.status == ("needs_review" if is_doubtful else "applied")


def test_losing_many_lines_more_is_in_doubt_even_if_it_fits_a_little_better() -> None:
    kept = placed(1, 2, 5.0 + KEEPING_MARGIN + 0.1)
    few, many = placed(1, 1 + MANY_LINES, 5.0), placed(1, 2 + MANY_LINES, 5.0)
    assert "ambiguous_place" not in codes(verdict_of(few, kept))
    assert "ambiguous_place" in codes(verdict_of(many, kept))
    assert "ambiguous_place" not in codes(verdict_of(many, replace(kept, weight=kept.weight - 0.2)))


def test_another_number_of_blank_lines_is_not_another_place() -> None:
    chosen = placed(5, 5, 5.0)
    assert (
        codes(
            verdict_of(
                chosen, placed(6, 6, 5.0 + BLANK_MARGIN - 0.1), placed(5, 5, 5.0, "", "new = 0")
            )
        )
        == []
    )
    assert codes(verdict_of(chosen, placed(6, 6, 5.0 + BLANK_MARGIN + 0.1))) != []


def test_errors_of_the_plan_reject_any_result() -> None:
    update = ["@@ -1 +1 @@", "-nothing = 'of this'", "+something = 1"]
    verdict = judged(ORIGINAL, update, ["something = 1", *ORIGINAL[1:]])
    assert verdict.status == "rejected"
    assert "anchor_not_found" in codes(verdict)
    assert "not_a_merge" not in codes(verdict)


def test_a_place_that_breaks_the_syntax_is_no_rival() -> None:
    tree = parse(ORIGINAL, "python")
    broken, sound = placed(4, 4, 6.0, "(", "new = 0"), placed(4, 4, 6.0, "other = 0")
    chosen = placed(2, 2, 5.0)
    for rival, expected in ((broken, []), (sound, ["ambiguous_place"])):
        plan = MergePlan(original_lines=ORIGINAL, candidates=((rival, chosen),), order=(0,))
        result = [*ORIGINAL[:2], "new = 0", *ORIGINAL[2:]]
        assert codes(judge(ORIGINAL, SNIPPET, result, plan=plan, tree=tree)) == expected
        assert codes(judge(ORIGINAL, SNIPPET, result, plan=plan)) == ["ambiguous_place"]


def test_a_place_is_settled_by_who_chose_it_with_all_rivals_in_sight() -> None:
    chosen, rival = placed(2, 2, -1.0), placed(4, 4, -1.0)
    longer, border = placed(4, 5, -1.5), placed(2, 3, 1.0)
    plan = MergePlan(
        original_lines=ORIGINAL, candidates=((border, chosen, rival, longer),), order=(0,)
    )
    result = [*ORIGINAL[:2], "new = 0", *ORIGINAL[2:]]

    def found(*offered: Placement, segment: int = 0) -> list[str]:
        confirmed = {segment: frozenset(offered)}
        return codes(judge(ORIGINAL, SNIPPET, result, plan=plan, confirmed=confirmed))

    assert found() == ["ambiguous_place"]
    assert found(chosen, rival, longer, border) == []
    assert found(chosen, rival, longer, border, segment=1) == ["ambiguous_place"]
    assert found(rival, longer, border) == ["ambiguous_place"], "it was not offered itself"
    assert found(chosen, border) == ["ambiguous_place"], "the other place was not in sight"
    assert found(chosen, border, longer) == [], "who turns down how a place begins turns it down"
    assert found(chosen, rival, longer) == ["ambiguous_place"], "other borders of its own place"


@pytest.mark.parametrize(("rival_of", "expected"), [(0, "applied"), (1, "needs_review")])
def test_lines_are_lost_only_where_their_own_place_is_unclear(rival_of: int, expected: str) -> None:
    head = [f"kept_{number} = {number}" for number in range(30)]
    tail = ["start = 1", *(f"old_{number} = {number}" for number in range(12)), "stop = 9"]
    lines = [*head, *tail]
    first = placed(0, 1, 4.0, "kept_0 = 1")
    second = replace(placed(len(head), len(lines), 4.0, tail[0], tail[-1]), segment=1)
    weight = 4.0 - PLACE_MARGIN - 0.1
    rivals = replace(first, end=0, weight=weight), replace(second, end=31, weight=weight)
    layers = [[first], [second]]
    layers[rival_of].append(rivals[rival_of])
    segments = tuple(
        Segment(lines=tuple(SegmentLine(text, row) for row, text in enumerate(one.lines)))
        for one in (first, second)
    )
    plan = MergePlan(original_lines=lines, candidates=tuple(map(tuple, layers)), order=(0, 1))
    result = ["kept_0 = 1", *head[1:], tail[0], tail[-1]]
    verdict = judge(lines, Snippet(format="lazy", segments=segments), result, plan=plan)
    assert verdict.status == expected
    assert codes(verdict) == ["lines_lost"] * (expected != "applied")
