"""Plans of single merges: where segments go, what is certain, and what the findings say."""

from __future__ import annotations

import pytest

from apply_service.edit.place.merge import MergePlan, plan_merge, splice
from apply_service.edit.place.merge_planner import MAX_SEGMENTS
from apply_service.edit.read.segment import Segment, SegmentLine, Snippet
from apply_service.edit.read.snippet import read_snippet

SHOP = """\
import json
from pathlib import Path

TAX = 0.19


class Basket:
    def __init__(self, path):
        self.path = Path(path)
        self.items = []

    def add(self, name, price):
        self.items.append((name, price))

    def total(self):
        return sum(price for _, price in self.items)


class Order:
    def __init__(self, basket):
        self.basket = basket

    def save(self):
        self.basket.path.write_text(json.dumps(self.basket.items))
""".splitlines()


def plan(update: str, original: list[str] | None = None, language: str = "python") -> MergePlan:
    lines = SHOP if original is None else original
    snippet = read_snippet(update.splitlines(), lines, language=language)
    return plan_merge(lines, snippet, language=language)


def merged(found: MergePlan) -> list[str]:
    assert found.best is not None
    return splice(found.original_lines, found.best)


def changed(old: str, new: str) -> list[str]:
    text = "\n".join(SHOP)
    assert text.count(old) == 1
    return text.replace(old, new).split("\n")


def test_context_on_both_sides_is_certain() -> None:
    found = plan(
        "# ... existing code ...\n"
        "    def add(self, name, price):\n"
        "        if price < 0:\n"
        "            raise ValueError(price)\n"
        "        self.items.append((name, price))\n"
        "# ... existing code ...\n"
    )
    check = "        if price < 0:\n            raise ValueError(price)\n"
    assert merged(found) == changed(
        "        self.items.append(", f"{check}        self.items.append("
    )
    assert found.is_unique
    assert not found.findings


def test_a_whole_definition_replaces_the_one_of_its_name() -> None:
    found = plan(
        "# ... existing code ...\n\n"
        "    def total(self):\n"
        "        net = sum(price for _, price in self.items)\n"
        "        return round(net * (1 + TAX), 2)\n\n"
        "# ... existing code ...\n"
    )
    body = (
        "        net = sum(price for _, price in self.items)\n"
        "        return round(net * (1 + TAX), 2)"
    )
    assert merged(found) == changed("        return sum(price for _, price in self.items)", body)


def test_a_lone_import_goes_to_the_imports_and_is_a_guess() -> None:
    found = plan("# ... existing code ...\nimport math\n# ... existing code ...\n")
    assert merged(found).index("import math") in (1, 2)
    assert not found.is_unique
    assert [finding.code for finding in found.findings] == ["place_guessed"]


def test_a_part_that_others_leave_no_room_contradicts_them() -> None:
    switch = [
        "switch (c) {",
        "case '+':",
        "\treturn plus();",
        "case '-':",
        "\treturn minus();",
        "}",
    ]
    original = ["int kind(char c) {", *switch, "return other();", "}"]
    part = "case '+':\n\treturn plus();\ncase '-':\n\treturn {};\n"
    update = f"// ...\n{part.format('minus(c)')}// ...\n{part.format('dash()')}// ...\n"
    found = plan_merge(original, read_snippet(update.splitlines(), original))
    assert [finding.code for finding in found.findings] == ["contradicting_segments"]
    alone = read_snippet(f"// ...\n{part.format('dash()')}// ...".splitlines(), original)
    assert not any(one.severity == "error" for one in plan_merge(original, alone).findings)


def test_a_segment_that_fits_twice_names_both_lines() -> None:
    original = [
        "def first():",
        "    go()",
        "    stop()",
        "",
        "def second():",
        "    go()",
        "    stop()",
    ]
    found = plan("# ...\n    go()\n    wait()\n    stop()\n# ...\n", original)
    assert not found.is_unique
    assert {path.placements[0].start for path in found.paths(10)} >= {1, 5}
    assert found.findings[0].code == "ambiguous_place"
    assert "2 or 6" in found.findings[0].message


def test_segments_out_of_order_go_to_their_own_places() -> None:
    found = plan(
        "# ... existing code ...\n"
        "    def save(self):\n"
        "        self.check()\n"
        "        self.basket.path.write_text(json.dumps(self.basket.items))\n"
        "# ... existing code ...\n"
        "        self.path = Path(path)\n"
        "        self.items = []\n"
        "        self.is_paid = False\n"
        "\n"
        "    def add(self, name, price):\n"
        "# ... existing code ...\n"
    )
    result = merged(found)
    assert result.index("        self.is_paid = False") < result.index("        self.check()")
    assert found.order == (1, 0)


def test_a_segment_takes_the_indentation_of_the_file() -> None:
    found = plan(
        "# ... existing code ...\n"
        "def add(self, name, price):\n"
        "    print(name)\n"
        "    self.items.append((name, price))\n"
        "# ... existing code ...\n"
    )
    assert "        print(name)" in merged(found)
    assert not found.is_unique


def test_old_code_that_goes_into_a_new_block_keeps_the_width_of_its_steps() -> None:
    original = ["import json", "", "", "def dumps(data):", "    return json.dumps(data)"]
    update = [
        "import json",
        "",
        "",
        "def dumps(data):",
        "    if provider:",
        "        return provider.dumps(data)",
        "    else:",
        "        return json.dumps(data)",
    ]
    assert merged(plan("\n".join(update), original)) == update
    narrow = [line.replace("    ", "  ") for line in original]
    assert merged(plan("\n".join(update), narrow)) == update, "what is in it says nothing else"


GO_SUM = """\
func Sum(values []int) int {
\ttotal := 0
\ttotal += values[0]
\treturn total
}
""".splitlines()


@pytest.mark.parametrize("spaces", [2, 4, 8])
def test_spaces_in_a_file_of_tabs_become_tabs_in_a_new_block_too(spaces: int) -> None:
    expected = [*GO_SUM[:2], "\tif len(values) > 0 {", "\t\ttotal += values[0]", "\t}", *GO_SUM[3:]]
    rest = [line.replace("Sum", "Other") for line in ["", *GO_SUM] * 2]
    update = ["// ... existing code ...", *expected, "// ... existing code ..."]
    found = plan("\n".join(update).replace("\t", " " * spaces), [*GO_SUM, *rest], "go")
    assert merged(found) == [*expected, *rest]


def test_tabs_in_a_file_of_spaces_become_spaces_in_a_new_block_too() -> None:
    update = (
        "# ... existing code ...\n"
        "    def add(self, name, price):\n"
        "        if price:\n"
        "            self.items.append((name, price))\n"
        "# ... existing code ...\n"
    )
    assert merged(plan(update.replace("    ", "\t"))) == changed(
        "        self.items.append((name, price))",
        "        if price:\n            self.items.append((name, price))",
    )


def test_the_header_of_a_class_without_a_marker_keeps_what_stands_above_it() -> None:
    original = [
        "package shop;",
        "",
        "public class Box {",
        "    private int size;",
        "",
        "    public int size() {",
        "        return size;",
        "    }",
        "}",
    ]
    method = ["    public boolean isEmpty() {", "        return size == 0;", "    }"]
    update = ["public class Box {", "    // ... existing code ...", "", *method, "}"]
    found = plan("\n".join(update), original, language="java")
    assert merged(found) == [*original[:-1], "", *method, "}"]


@pytest.mark.parametrize(
    ("first", "last"), [(1, 0), (2, 0), (0, 1), (1, 1)], ids=["first", "two", "last", "both"]
)
def test_a_nearly_whole_file_leaves_in_doubt_what_is_missing(first: int, last: int) -> None:
    shown = [line.replace("0.19", "0.2") for line in SHOP[first : len(SHOP) - last]]
    found = plan("\n".join(shown))
    assert [finding.code for finding in found.findings] == ["border_unclear"]
    assert not found.is_unique
    assert merged(found) == [*SHOP[:first], *shown, *SHOP[len(SHOP) - last :]]
    assert found.accepts(shown, ignores_blank_lines=True) is not None


def test_new_lines_at_the_border_of_a_whole_file_take_the_place_of_old_ones() -> None:
    shown = ["import yaml", *SHOP[1:-1], "# end"]
    snippet = read_snippet(shown, SHOP, language="python")
    assert snippet.format == "whole"
    assert snippet.segments[0].texts == shown


def test_a_removal_takes_the_definition_and_its_blank_line() -> None:
    found = plan("# ... existing code ...\n\n    # remove total\n\n# ... existing code ...\n")
    removed = "\n\n    def total(self):\n        return sum(price for _, price in self.items)"
    assert merged(found) == changed(removed, "")


def test_a_removal_of_two_things_of_one_name_is_in_doubt() -> None:
    found = plan("# ... existing code ...\n# remove __init__\n# ... existing code ...\n")
    assert not found.is_unique
    assert found.findings[0].code == "ambiguous_removal"
    assert "8, 20" in found.findings[0].message


def explicit(old: list[str], new: list[str], hint: int | None = None) -> Snippet:
    lines = tuple(SegmentLine(text, number) for number, text in enumerate(new, start=1))
    segment = Segment(lines=lines, old=tuple(old), old_line_hint=hint)
    return Snippet(format="diff", segments=(segment,))


@pytest.mark.parametrize("indent", ["", "    ", "        "])
def test_old_lines_are_found_whatever_their_indentation(indent: str) -> None:
    old = [f"{indent}self.items.append((name, price))"]
    found = plan_merge(SHOP, explicit(old, [f"{indent}self.items += [(name, price)]"]))
    assert merged(found) == changed(
        "self.items.append((name, price))", "self.items += [(name, price)]"
    )
    assert found.is_unique


def test_a_line_number_decides_between_equal_old_lines() -> None:
    original = ["start()", "go()", "start()", "go()"]
    for hint in (2, 4):
        found = plan_merge(original, explicit(["go()"], ["run()"], hint))
        assert merged(found)[hint - 1] == "run()"
        assert not found.is_unique


def test_old_lines_that_are_nowhere_make_no_merge() -> None:
    found = plan_merge(SHOP, explicit(["    def totals(self):", "        pass"], ["x = 1"]))
    assert found.best is None
    assert found.num_paths(10) == 0
    assert found.accepts(SHOP) is None
    finding = found.findings[0]
    assert finding.code == "anchor_not_found"
    assert finding.severity == "error"
    assert "line 15" in finding.hint
    assert "Basket" in finding.hint


def test_too_many_parts_are_refused() -> None:
    segment = Segment(lines=(SegmentLine("TAX = 0.07", 1),))
    found = plan_merge(SHOP, Snippet(format="lazy", segments=(segment,) * (MAX_SEGMENTS + 1)))
    assert found.best is None
    assert found.findings[0].code == "too_many_segments"


def test_an_instruction_comment_may_stay_or_go() -> None:
    lines = (
        SegmentLine("    # Change the total to include the tax", 2, is_optional=True),
        SegmentLine("    def total(self):", 3),
        SegmentLine("        return (1 + TAX) * sum(price for _, price in self.items)", 4),
    )
    found = plan_merge(SHOP, Snippet(format="lazy", segments=(Segment(lines=lines),)))
    without = merged(found)
    assert "include the tax" not in "\n".join(without)
    place = without.index("    def total(self):")
    with_comment = [*without[:place], lines[0].text, *without[place:]]
    assert found.accepts(with_comment) is not None
    assert found.accepts([*without, "x = 1"]) is None


def test_membership_may_ignore_blank_lines() -> None:
    found = plan("# ...\nTAX = 0.19\nFEE = 2\n\n\nclass Basket:\n# ...\n")
    squeezed = [line for line in merged(found) if line]
    assert found.accepts(squeezed) is None
    assert found.accepts(squeezed, ignores_blank_lines=True) is not None


EQUAL = ["x = 1"] * 20_000


@pytest.mark.parametrize(
    ("original", "segments"),
    [
        ([], [["x = 1"]]),
        ([""], [["x = 1"]]),
        (["x = 1"], [["x = 1"]]),
        (EQUAL, [["x = 1", "y = 2", "x = 1"]]),
        (EQUAL, [["x = 1", f"y = {number}"] for number in range(100)]),
        (["}"] * 5000, [["}"]] * 200),
        (
            ["  " * depth + "if (a) {" for depth in range(1000)] + ["}"] * 1000,
            [["}", "go();", "}"]],
        ),
        (["a" * 100_000 + str(number) for number in range(20)], [["a" * 100_000 + "7b"]]),
    ],
)
def test_hard_inputs_end_with_a_merge_or_a_finding(
    original: list[str], segments: list[list[str]]
) -> None:
    found = plan_merge(
        original,
        Snippet(
            format="lazy",
            segments=tuple(
                Segment(lines=tuple(SegmentLine(text, 2) for text in texts)) for texts in segments
            ),
        ),
    )
    if found.best is None:
        assert found.findings
    else:
        result = splice(original, found.best)
        accepted = found.accepts(result)
        assert accepted is not None
        assert splice(original, accepted) == result
