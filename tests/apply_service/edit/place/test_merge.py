"""Plans of single merges: where parts go, what is certain, and why there is no merge."""

from __future__ import annotations

import pytest

from apply_service.edit.place.merge import MAX_SEGMENTS, MergePlan, plan_merge
from apply_service.edit.place.placement import splice
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
    return plan_merge(lines, update.splitlines(), snippet, language=language)


def merged(found: MergePlan) -> list[str]:
    assert found.best is not None
    return list(found.best)


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
    assert found.is_certain
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


def test_a_lone_import_goes_to_the_imports() -> None:
    found = plan("# ... existing code ...\nimport math\n# ... existing code ...\n")
    assert merged(found).index("import math") < 3


def test_a_segment_that_fits_twice_has_both_merges_and_no_certainty() -> None:
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
    assert not found.is_certain
    assert {merge.index("    wait()") for merge in found.merges[:2]} == {2, 6}


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


def test_a_segment_takes_the_indentation_of_the_file() -> None:
    found = plan(
        "# ... existing code ...\n"
        "def add(self, name, price):\n"
        "    print(name)\n"
        "    self.items.append((name, price))\n"
        "# ... existing code ...\n"
    )
    assert "        print(name)" in merged(found)


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
    assert not found.is_certain


def test_a_removal_of_what_is_not_there_says_what_is() -> None:
    found = plan("# ... existing code ...\n# remove refund\n# ... existing code ...\n")
    assert found.best is None
    (finding,) = found.findings
    assert (finding.code, finding.severity, finding.line) == ("removal_not_found", "error", 2)
    assert "Basket" in finding.hint


def test_too_many_parts_are_refused() -> None:
    segment = Segment(lines=(SegmentLine("TAX = 0.07", 1),))
    snippet = Snippet(format="lazy", segments=(segment,) * (MAX_SEGMENTS + 1))
    found = plan_merge(SHOP, ["TAX = 0.07"], snippet)
    assert found.best is None
    assert found.findings[0].code == "too_many_segments"


def test_an_instruction_comment_may_stay_or_go() -> None:
    found = plan(
        "# ... existing code ...\n"
        "    # Change the total to include the tax\n"
        "    def total(self):\n"
        "        return (1 + TAX) * sum(price for _, price in self.items)\n"
        "# ... existing code ...\n"
    )
    shown = {sum("include the tax" in line for line in merge) for merge in found.merges[:2]}
    assert shown == {0, 1}


@pytest.mark.parametrize(
    "update",
    [
        pytest.param("@@ -1,2 +1,3 @@\n x\n+new\n y\n", id="a line number tells places apart"),
        pytest.param(
            "<<<<<<< SEARCH\nl1\nl2\n=======\nl1\n=======\nnew\nl2\n>>>>>>> REPLACE\n",
            id="a sign of the format among the new lines",
        ),
    ],
)
def test_exact_lines_in_doubt_are_not_certain(update: str) -> None:
    file = ["x", "y", *(f"l{number}" for number in range(300)), "x", "y"]
    found = plan(update, file)
    assert found.merges
    assert not found.is_certain


def test_merges_are_paths_through_the_layers() -> None:
    shop = [*SHOP[:-1], "        self.basket.total()", "        return self", *SHOP[-1:]]
    shop[16:16] = ["        self.basket.total()"]
    found = plan("# ...\n        self.basket.total()\n        log(self)\n# ...\n", shop)
    assert len(found.merges) > len(found.likely) > 1
    for number, merge in enumerate(found.merges):
        assert tuple(splice(shop, found.path(number))) == merge
        assert found.number_of(merge) == number
    assert found.open_placements
    assert found.number_of(shop[1:]) is None


def test_no_likely_merge_leaves_out_what_the_first_takes() -> None:
    lines = tuple(SegmentLine(number=n, text=text) for n, text in ((2, "a = 2"), (3, "b = 2")))
    snippet = Snippet(format="lazy", segments=(Segment(lines=lines),))
    original = ("a = 1", "b = 1", "c = 1")
    left_out = ("a = 2", "b = 1", "c = 1")
    elsewhere = ("a = 2", "b = 1", "c = 1", "b = 2")
    found = MergePlan(
        original_lines=original,
        merges=(("a = 2", "b = 2", "c = 1"), left_out, elsewhere),
        weights=(-0.5, -1.5, -2.0),
        certainty=0.6,
        snippet=snippet,
    )
    assert found.likely == (0, 2)
    for number, merge in enumerate(found.merges):
        assert tuple(splice(original, found.path(number))) == merge
    assert {one.lines for one in found.open_placements}.isdisjoint({("a = 2",)})


def test_blank_lines_may_be_ignored() -> None:
    found = plan("# ...\nTAX = 0.19\nFEE = 2\n\n\nclass Basket:\n# ...\n")
    squeezed = [line for line in merged(found) if line]
    assert found.number_of(squeezed) is None
    assert found.number_of(squeezed, ignores_blank_lines=True) == 0


def test_parts_are_shown_where_they_go() -> None:
    found = plan(
        "# ... existing code ...\nTAX = 0.07\n# ... existing code ...\n"
        "# remove save\n# ... existing code ...\n"
    )
    parts = {part.lines: (part.start, part.end) for part in found.parts}
    assert parts == {("TAX = 0.07",): (3, 4), ("# remove save",): (22, 24)}


EQUAL = ["x = 1"] * 20_000


@pytest.mark.parametrize(
    ("original", "segments"),
    [
        ([], [["x = 1"]]),
        ([""], [["x = 1"]]),
        (["x = 1"], [["x = 1"]]),
        (["}"] * 2000, [["}"]] * 20),
        (
            ["  " * depth + "if (a) {" for depth in range(300)] + ["}"] * 300,
            [["}", "go();", "}"]],
        ),
        (["a" * 100_000 + str(number) for number in range(20)], [["a" * 100_000 + "7b"]]),
    ],
)
def test_hard_inputs_end_with_a_merge_or_a_finding(
    original: list[str], segments: list[list[str]]
) -> None:
    update = ["// ..."]
    for texts in segments:
        update += [*texts, "// ..."]
    found = plan_merge(original, update)
    assert bool(found.merges) != bool(found.findings)
