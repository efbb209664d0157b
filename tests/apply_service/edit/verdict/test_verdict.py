"""The rules of the verdict; `test_verdict_docs` has an example of each code."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apply_service.edit.read.segment import Segment, SegmentLine, Snippet
from apply_service.edit.syntax.syntax import parse
from apply_service.edit.verdict.verdict import MAX_FINDINGS_PER_CODE, RemovedLine, Status, judge

ORIGINAL = """\
import os
import sys

LIMIT = 10


def first(path):
    name = os.path.basename(path)
    return name


def second(count):
    for number in range(count):
        print(number)


def third():
    return sys.argv
""".splitlines()

UPDATE = """\
# ... existing code ...
def first(path):
    name = os.path.basename(path)
    return name.lower()
# ... existing code ...
""".splitlines()


def replaced(old: str, *new: str) -> list[str]:
    place = ORIGINAL.index(old)
    return [*ORIGINAL[:place], *new, *ORIGINAL[place + 1 :]]


RIGHT = replaced("    return name", "    return name.lower()")


def codes(original: list[str], update: list[str], result: list[str]) -> tuple[Status, set[str]]:
    verdict = judge(original, update, result)
    return verdict.status, {finding.code for finding in verdict.findings}


def test_a_right_merge_is_applied() -> None:
    assert codes(ORIGINAL, UPDATE, RIGHT) == ("applied", set())


@pytest.mark.parametrize(
    ("update", "result"),
    [
        (
            ["# ...", "LIMIT = 10", "STEP = 2", "# ..."],
            replaced("LIMIT = 10", "LIMIT = 10", "STEP = 2"),
        ),
        (
            ["import os", "import re", "import sys", "# ..."],
            replaced("import os", "import os", "import re"),
        ),
        (["# ...", "import sys", "LIMIT = 10", "# ..."], ORIGINAL[:2] + ORIGINAL[3:]),
        (["# ...", "def third():", "    return 3"], [*ORIGINAL[:-1], "    return 3"]),
        (
            ["# ... existing code ...", "# remove LIMIT", "# ... existing code ..."],
            ORIGINAL[:3] + ORIGINAL[4:],
        ),
        (["x = 1", "y = 2"], ["x = 1", "y = 2"]),
    ],
    ids=["insert", "import", "blank", "tail", "removal", "new file"],
)
def test_other_right_merges_are_applied(update: list[str], result: list[str]) -> None:
    original = ORIGINAL if update[0] != "x = 1" else ["z = 3"]
    assert codes(original, update, result) == ("applied", set())


def test_nothing_to_do_is_unchanged() -> None:
    update = ["# ...", "LIMIT = 10", "# ..."]
    assert codes(ORIGINAL, update, ORIGINAL) == ("unchanged", set())


def test_nothing_changed_though_asked() -> None:
    assert codes(ORIGINAL, UPDATE, ORIGINAL) == (
        "rejected",
        {"nothing_changed", "snippet_line_missing"},
    )
    status, found = codes(ORIGINAL, ["# ...", "# remove LIMIT", "# ..."], ORIGINAL)
    assert (status, found) == ("rejected", {"nothing_changed"})


@pytest.mark.parametrize(
    "left",
    ["# ... existing code ...", "    # ... rest of the function ...", "x(1, # ... rest ...)"],
)
def test_marker_left(left: str) -> None:
    status, found = codes(ORIGINAL, UPDATE, [*RIGHT, left])
    assert status == "rejected"
    assert "marker_left" in found


def test_a_marker_of_the_original_may_stay_but_not_multiply() -> None:
    original = [*ORIGINAL, "# ... existing code ..."]
    update = ["# ...", *UPDATE[1:4], "# ..."]
    right = [*RIGHT, "# ... existing code ..."]
    assert codes(original, update, right) == ("applied", set())
    assert "marker_left" in codes(original, update, [right[-1], *right])[1]


def test_a_removal_directive_left_in_the_result_asks_for_review() -> None:
    result = replaced("LIMIT = 10", "# remove LIMIT")
    status, found = codes(ORIGINAL, ["# ...", "# remove LIMIT", "# ..."], result)
    assert status == "needs_review"
    assert found == {"marker_left"}


def test_a_listing_is_left_unless_the_update_has_it_as_text() -> None:
    listing = "# ... first and second ..."
    assert codes(ORIGINAL, [*UPDATE, listing], [*RIGHT, listing]) == ("rejected", {"marker_left"})
    diff = ["@@ -4,1 +4,2 @@", " LIMIT = 10", f"+{listing}"]
    assert codes(ORIGINAL, diff, replaced("LIMIT = 10", "LIMIT = 10", listing))[0] == "applied"


def test_a_note_left_in_the_result_asks_for_review() -> None:
    update = ["# ...", "# second removed", "# ..."]
    result = [*ORIGINAL[:11], "# second removed", *ORIGINAL[14:]]
    assert codes(ORIGINAL, update, result) == ("needs_review", {"unknown_line"})
    assert codes(ORIGINAL, update, [*ORIGINAL[:11], *ORIGINAL[16:]]) == ("applied", set())


@pytest.mark.parametrize("ending", ["length", "malformed"])
def test_truncated(ending: str) -> None:
    verdict = judge(ORIGINAL, UPDATE, RIGHT, ending=ending)  # type: ignore[arg-type]
    assert verdict.status == "rejected"
    assert [finding.code for finding in verdict.findings] == ["truncated"]


def test_snippet_line_missing() -> None:
    update = ["# ...", "LIMIT = 10", "STEP = 2", "STEP_2 = 2", "# ..."]
    result = replaced("LIMIT = 10", "LIMIT = 10", "STEP = 2")
    assert codes(ORIGINAL, update, result) == ("needs_review", {"snippet_line_missing"})
    twice = ["# ...", "LIMIT = 10", "STEP = 2", "# ...", "STEP = 2"]
    assert codes(ORIGINAL, twice, result) == ("needs_review", {"snippet_line_missing"})


def test_segment_broken() -> None:
    update = ["# ...", "    return name", "def extra():", "    return 1", "# ..."]
    place = ORIGINAL.index("def third():")
    result = [*ORIGINAL[:place], "def extra():", "    return 1", "", "", *ORIGINAL[place:]]
    assert codes(ORIGINAL, update, result) == ("needs_review", {"segment_broken"})


def test_unknown_line() -> None:
    result = [*RIGHT, "print('invented')"]
    assert codes(ORIGINAL, UPDATE, result) == ("needs_review", {"unknown_line"})
    invented = [f"invented {number}" for number in range(50)]
    status, found = codes(ORIGINAL, UPDATE, [*RIGHT, *invented])
    assert (status, found) == ("rejected", {"unknown_line"})


@pytest.mark.parametrize(
    "result",
    [
        [line.replace("        print", "    print") for line in RIGHT],
        ["import os ", *RIGHT[1:]],
        [*RIGHT[:-3], *RIGHT[-2:]],
        [*RIGHT[:4], *RIGHT[5:]],
        [*RIGHT[:9], *RIGHT[10:]],
        [*RIGHT[:9], *RIGHT[11:]],
        [*RIGHT[:3], "", *RIGHT[3:]],
        [*RIGHT, ""],
        [*RIGHT[:2], "    ", *RIGHT[3:]],
    ],
    ids=[
        "indentation",
        "trailing",
        "far",
        "before",
        "after",
        "both",
        "added",
        "at the end",
        "not empty",
    ],
)
def test_whitespace_changed(result: list[str]) -> None:
    assert codes(ORIGINAL, UPDATE, result) == ("needs_review", {"whitespace_changed"})


@pytest.mark.parametrize(
    ("update", "num_blank", "status"),
    [
        (["# ...", "    return sys.argv", "", "", "def last():", "    pass"], 2, "applied"),
        (["# ...", "    return sys.argv", "", "def last():", "    pass"], 1, "applied"),
        (["# ...", "    return sys.argv", "", "", "def last():", "    pass"], 1, "needs_review"),
        (["# ...", "", "def last():", "    pass"], 1, "applied"),
        (["# ...", "def last():", "    pass"], 0, "applied"),
        (["# ...", "def last():", "    pass"], 5, "needs_review"),
    ],
)
def test_blank_lines_where_update_and_original_meet(
    update: list[str], num_blank: int, status: str
) -> None:
    result = [*ORIGINAL, *[""] * num_blank, "def last():", "    pass"]
    assert codes(ORIGINAL, update, result)[0] == status


def test_repeated_line() -> None:
    assert "repeated_line" in codes(ORIGINAL, UPDATE, [*RIGHT, *ORIGINAL[-2:]])[1]
    assert codes(ORIGINAL, UPDATE, [*RIGHT, *ORIGINAL[-2:]])[0] == "needs_review"


def test_misplaced_line() -> None:
    result = ["import sys", "import os", *RIGHT[2:]]
    assert codes(ORIGINAL, UPDATE, result) == ("needs_review", {"misplaced_line"})


def test_neighbours_are_known_from_somewhere() -> None:
    original = ["a {", "  x", "}", "b {", "  y", "}"]
    update = ["// ...", "b {", "  y2", "}", "// ..."]
    right = ["a {", "  x", "}", "b {", "  y2", "}"]
    swapped = ["a {", "}", "  x", "b {", "  y2", "}"]
    assert codes(original, update, right) == ("applied", set())
    assert codes(original, update, swapped) == ("needs_review", {"misplaced_line"})


def test_a_line_with_the_indentation_of_another_is_repeated() -> None:
    result = [*RIGHT[:-1], "        print(number)"]
    assert "repeated_line" in codes(ORIGINAL, UPDATE, result)[1]


@pytest.mark.parametrize(
    "lost", ["import sys", "LIMIT = 10", "    return sys.argv", "        print(number)"]
)
def test_one_line_lost_anywhere_asks_for_review(lost: str) -> None:
    result = [line for line in RIGHT if line != lost]
    assert codes(ORIGINAL, UPDATE, result) == ("needs_review", {"lines_lost"})


def test_more_lost_than_an_insertion_explains() -> None:
    update = ["# ...", "def fourth():", "    return 4"]
    place = ORIGINAL.index("def second(count):")
    result = [*ORIGINAL[:place], *update[1:]]
    assert codes(ORIGINAL, update, result) == ("needs_review", {"lines_lost"})


def test_most_of_the_file_lost_is_rejected() -> None:
    original = [f"line {number}" for number in range(40)]
    update = ["# ...", "line 39", "line 40"]
    status, found = codes(original, update, ["line 39", "line 40"])
    assert (status, found) == ("rejected", {"lines_lost"})


def test_many_lines_between_two_snippet_lines_ask_for_review() -> None:
    original = [f"line {number}" for number in range(40)]
    update = ["# ...", "line 3", "line 36", "# ..."]
    result = [*original[:4], *original[36:]]
    assert codes(original, update, result)[1] == {"lines_lost"}
    few = ["# ...", "line 3", "line 8", "# ..."]
    assert codes(original, few, [*original[:4], *original[8:]]) == ("applied", set())


def test_findings_are_capped_and_counted() -> None:
    result = [*RIGHT, *(f"invented {number}" for number in range(100))]
    findings = judge(ORIGINAL, UPDATE, result).findings
    assert len(findings) == MAX_FINDINGS_PER_CODE
    assert "and 90 more" in findings[-1].message


def test_lines_are_counted_from_one() -> None:
    finding = judge(ORIGINAL, UPDATE, [*RIGHT, "invented()"]).findings[0]
    assert finding.line == len(RIGHT) + 1
    assert finding.hint


LINES = st.lists(st.sampled_from(["a", "b", "  b", "}", "", "# ...", "# remove a"]), max_size=12)


def test_an_error_at_the_end_of_the_file_is_a_syntax_error() -> None:
    verdict = judge(ORIGINAL, UPDATE, [*RIGHT, "x = ("], tree=TREE)
    assert "syntax_error" in {finding.code for finding in verdict.findings}


@given(LINES, LINES, LINES)
def test_any_input_gets_a_verdict(
    original: list[str], update: list[str], result: list[str]
) -> None:
    verdict = judge(original, update, result)
    severities = {finding.severity for finding in verdict.findings}
    assert (verdict.status == "rejected") == ("error" in severities)
    assert verdict.status in ("applied", "unchanged") or severities


TREE = parse(ORIGINAL, "python")


def codes_with_tree(update: list[str], result: list[str]) -> set[str]:
    """The codes for an update of `ORIGINAL` when its syntax is known."""
    return {finding.code for finding in judge(ORIGINAL, update, result, tree=TREE).findings}


def test_a_lost_import_and_a_lost_definition_have_names() -> None:
    assert codes_with_tree(UPDATE, [line for line in RIGHT if line != "import sys"]) == {
        "import_dropped"
    }
    place = RIGHT.index("def second(count):")
    assert codes_with_tree(UPDATE, [*RIGHT[:place], *RIGHT[place + 5 :]]) == {"symbol_lost"}
    assert codes_with_tree(UPDATE, [*RIGHT[: place + 1], *RIGHT[place + 2 :]]) >= {"lines_lost"}


def test_a_definition_may_be_renamed_removed_or_moved() -> None:
    place = ORIGINAL.index("def second(count):")
    without = [*ORIGINAL[:place], *ORIGINAL[place + 5 :]]
    assert codes_with_tree(["# ...", "# remove second", "# ..."], without) == set()
    renamed = ["# ...", "def last():", "    return sys.argv"]
    assert codes_with_tree(renamed, replaced("def third():", "def last():")) == set()
    whole = [line for line in ORIGINAL if line != "LIMIT = 10"]
    assert "symbol_lost" not in codes_with_tree(whole, whole)


def test_an_added_import_is_reported_as_one() -> None:
    assert codes_with_tree(UPDATE, ["import re", *RIGHT]) == {"import_added"}


def test_only_new_syntax_errors_count() -> None:
    broken = [line.replace("range(count):", "range(count:") for line in RIGHT]
    assert "syntax_error" in codes_with_tree(UPDATE, broken)
    update = ["# ...", "LIMIT = 20", "# ..."]
    original = [line.replace("LIMIT = 10", "LIMIT = 10)") for line in broken]
    result = [line.replace("LIMIT = 10)", "LIMIT = 20") for line in original]
    verdict = judge(original, update, result, tree=parse(original, "python"))
    assert verdict.findings == ()


def test_a_loop_is_rejected_and_named_once() -> None:
    verdict = judge(ORIGINAL, UPDATE, [*RIGHT, *["    print(1)", "    print(2)"] * 9])
    assert verdict.status == "rejected"
    assert [finding.code for finding in verdict.findings].count("loop") == 1


def test_a_diff_is_judged_by_what_it_removes_and_adds() -> None:
    update = ["@@ -4,1 +4,2 @@", "-LIMIT = 10", "+LIMIT = 20", "+STEP = 2"]
    right = replaced("LIMIT = 10", "LIMIT = 20", "STEP = 2")
    assert codes(ORIGINAL, update, right) == ("applied", set())
    both = replaced("LIMIT = 10", "LIMIT = 10", "LIMIT = 20", "STEP = 2")
    assert "removal_skipped" in codes(ORIGINAL, update, both)[1]
    only_removed = ["@@ -4,1 +4,0 @@", "-LIMIT = 10"]
    assert "nothing_changed" in codes(ORIGINAL, only_removed, ORIGINAL)[1]
    many = ["@@ -1,16 +1,0 @@", *("-" + line for line in ORIGINAL[:16])]
    assert codes(ORIGINAL, many, ORIGINAL[16:])[0] == "applied"


def test_optional_lines_may_be_there_or_not() -> None:
    lines = (
        SegmentLine("LIMIT = 10", 1),
        SegmentLine("# Add a step", 2, is_optional=True),
        SegmentLine("STEP = 2", 3),
    )
    snippet = Snippet(format="lazy", segments=(Segment(lines=lines),))
    for new in (["STEP = 2"], ["# Add a step", "STEP = 2"]):
        result = replaced("LIMIT = 10", "LIMIT = 10", *new)
        assert judge(ORIGINAL, snippet, result).status == "applied"


def test_removed_lines_are_listed_whatever_the_status() -> None:
    verdict = judge(ORIGINAL, UPDATE, [line for line in RIGHT if line != "import sys"])
    assert verdict.removed_lines == (
        RemovedLine(2, "import sys"),
        RemovedLine(9, "    return name"),
    )
    shifted = [line.replace("        print", "    print") for line in RIGHT]
    assert judge(ORIGINAL, UPDATE, shifted).removed_lines == (RemovedLine(9, "    return name"),)


def test_an_update_that_cannot_be_read_is_still_judged() -> None:
    update = ["unrelated = 1", "nothing = 2", "of_this = 3"]
    assert judge(ORIGINAL, update, [*ORIGINAL, *update]).status == "applied"
    assert judge(ORIGINAL, update, ORIGINAL).status == "rejected"


@pytest.mark.parametrize(
    ("joined", "status"),
    [
        ("    total = price * count * (1 + rate)", "applied"),
        ("    total = price * count", "needs_review"),
    ],
    ids=["all their words", "a word is missing"],
)
def test_lines_that_are_joined_are_not_lost(joined: str, status: str) -> None:
    old = ["    total = price", "    total *= count", "    total *= 1 + rate"]
    if status == "applied":
        old = ["    total = (", "        price", "        * count", "        * (1 + rate)", "    )"]
    original = ["def cost(price, count, rate):", "    check(rate)", *old, "    return total"]
    update = ["# ...", joined, "    return total"]
    result = [*original[:2], joined, "    return total"]
    assert codes(original, update, result)[0] == status
