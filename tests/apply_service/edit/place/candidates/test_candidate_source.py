"""Edits whose right merge must be among the candidates of their segments."""

from __future__ import annotations

import pytest

from apply_service.edit.place.candidates.candidate import Candidate, KeptRun
from apply_service.edit.place.candidates.candidate_source import candidates_of
from apply_service.edit.place.candidates.filled_lines import FilledLines
from apply_service.edit.place.candidates.rows import Row, rows_of
from apply_service.edit.read.segment import Segment, SegmentLine

FILE = """\
class Store:
    def load(self, path):
        text = path.read_text()
        self.items = parse(text)
        return len(self.items)

    def save(self, path):
        path.write_text(dump(self.items))
        return len(self.items)


def main():
    store = Store()
    store.load(HERE)
""".splitlines()


def results(update: str, **outer: bool) -> list[list[str]]:
    """What each candidate of an update of one segment makes of the file, without blank lines."""
    original = FilledLines(FILE)
    rows = [Row(line) for line in update.splitlines() if line.strip()]
    flags = {"opens_file": False, "closes_file": False} | outer
    return [
        original.lines[: one.start] + one.written(rows, original) + original.lines[one.end :]
        for one in candidates_of(original, rows, **flags)
    ]


def changed(old: str, new: str) -> list[str]:
    """The file without blank lines with `old` in place of `new`; `old` stands there once."""
    text = "\n".join(FilledLines(FILE).lines)
    assert text.count(old) == 1
    return text.replace(old, new).splitlines()


@pytest.mark.parametrize(
    ("update", "old", "new"),
    [
        pytest.param(
            "        text = path.read_text(encoding='utf-8')",
            "path.read_text()",
            "path.read_text(encoding='utf-8')",
            id="one line, modified",
        ),
        pytest.param(
            "        text = path.read_text()\n        return len(self.items)",
            "        self.items = parse(text)\n",
            "",
            id="a line left out between two",
        ),
        pytest.param(
            "    def clear(self):\n        self.items = {}",
            "    def save",
            "    def clear(self):\n        self.items = {}\n    def save",
            id="a new method between two",
        ),
        pytest.param(
            "    def save(self, path):\n        return dump(self.items, path)",
            "        path.write_text(dump(self.items))\n        return len(self.items)\ndef main",
            "        return dump(self.items, path)\ndef main",
            id="a whole method",
        ),
        pytest.param(
            "def load(self, path):\n    text = path.read_bytes()\n    self.items = parse(text)",
            "path.read_text()",
            "path.read_bytes()",
            id="all rows too far to the left",
        ),
    ],
)
def test_the_right_merge_is_among_them(update: str, old: str, new: str) -> None:
    assert changed(old, new) in results(update)


def test_lines_that_were_not_sent_may_be_forgotten() -> None:
    update = "class Store:\n    path = None\n    def save(self, path):"
    wanted = changed("class Store:\n", "class Store:\n    path = None\n")
    assert wanted in results(update)


@pytest.mark.parametrize("lead", [[], ["@cached"]])
def test_no_definition_comes_below_the_attribute_of_another_one(lead: list[str]) -> None:
    original = FilledLines(["@cached", "@final", "def load():", "    return 1", "", "LAST = 2"])
    rows = [Row(line) for line in [*lead, "def save():", "    return 2"]]
    found = candidates_of(original, rows, opens_file=False, closes_file=False)
    assert {one.end for one in found} == {0, 3, 4, 5}
    rows = [Row("@wide")]
    found = candidates_of(original, rows, opens_file=False, closes_file=False)
    assert {one.end for one in found} >= {0, 1, 2}


def test_an_update_without_a_marker_before_it_may_begin_the_file() -> None:
    whole = ["import json", *FilledLines(FILE).lines]
    assert whole in results("import json\nclass Store:", opens_file=True)


def test_an_instruction_may_be_left_out() -> None:
    original = FilledLines(FILE)
    rows = [Row("    # Call it twice", is_optional=True), Row("    store.load(HERE)")]
    written = {
        tuple(one.written(rows, original))
        for one in candidates_of(original, rows, opens_file=False, closes_file=False)
    }
    assert {("    # Call it twice", "    store.load(HERE)"), ("    store.load(HERE)",)} <= written


def test_kept_lines_stay_where_they_are_though_rows_move() -> None:
    original = FilledLines(["if a:", "  b()", "  c()"])
    candidate = Candidate(start=0, end=3, shift=2, kept=(KeptRun(1, 1, 2),))
    assert candidate.written([Row("x"), Row("y")], original) == ["  x", "  b()", "  y"]


def test_old_lines_of_a_format_are_rows_that_are_not_written() -> None:
    lines = tuple(SegmentLine(text, number) for number, text in enumerate(["a", "", "new"], 1))
    segment = Segment(lines=lines, old=("a", "old"))
    assert rows_of(segment, "diff") == [
        Row("a"),
        Row("old", is_written=False),
        Row("new", is_found=False, blank=("",)),
    ]
    assert rows_of(segment, "fragment") == [Row("a"), Row("new", blank=("",))]
