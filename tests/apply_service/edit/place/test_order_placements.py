"""Lines without context: what they are changed versions of, and headers with another name."""

from __future__ import annotations

import pytest

from apply_service.edit.place.merge import plan_merge, splice
from apply_service.edit.place.order_placements import OrderPlacements
from apply_service.edit.place.placement import Placement
from apply_service.edit.read.snippet import read_snippet
from apply_service.edit.syntax.definitions import find_definitions
from apply_service.edit.text.line_index import LineIndex
from apply_service.edit.text.similarity import Similarity
from apply_service.edit.text.word_weights import WordWeights

PYTHON = """\
LIMIT = 10


class Box:
    def open_path(self, path, mode):
        self.path = path

    def close(self):
        self.path = None


def total_of(order, rate):
    total = sum(line.price for line in order.lines)
    return round(total * rate, 2)
"""
TYPESCRIPT = """\
export class Box {
  async openPath(path: string, mode: Mode): Promise<void> {
    this.path = path;
  }

  close(): void {
    this.path = undefined;
  }
}
"""
GO = """\
func readBlock(device *Device, size int) error {
	return device.read(size)
}

func close(device *Device) error {
	return device.close()
}
"""


def placements_of(original: str, renames: dict[str, str] | None = None) -> OrderPlacements:
    lines = original.splitlines()
    index = LineIndex(lines)
    return OrderPlacements(
        index,
        find_definitions(lines),
        None,
        Similarity(index.stripped, renames=renames or {}),
        WordWeights(index.stripped),
    )


def changed(original: str, text: str, renames: dict[str, str] | None = None) -> list[Placement]:
    return placements_of(original, renames).changed(
        0, text.splitlines(), low=0, high=len(original.splitlines())
    )


def spans(placements: list[Placement]) -> list[tuple[int, int]]:
    return [(one.start, one.end) for one in placements]


def test_a_changed_line_is_sure_where_hardly_a_word_goes() -> None:
    found = changed(PYTHON, "    total = sum(line.price * line.count for line in order.lines)")
    assert spans(found)[0] == (12, 13)
    assert found[0].reason == "variant"


def test_the_only_line_that_binds_a_name_is_the_one_that_changes() -> None:
    (found,) = changed(PYTHON, "LIMIT = max(20, os.cpu_count())")
    assert (found.start, found.end, found.reason) == (0, 1, "variant")
    assert spans(changed(PYTHON, "BORDER = max(20)", {"BORDER": "LIMIT"})) == [(0, 1)]


@pytest.mark.parametrize(
    "text",
    ["BORDER = 20", "    LIMIT = 20", "    report(order)", "    return sum(order)"],
    ids=["name", "depth", "new", "few words"],
)
def test_what_may_be_something_else_is_left_to_guesses(text: str) -> None:
    assert changed(PYTHON, text) == []


def test_a_name_that_is_bound_twice_is_not_sure() -> None:
    assert changed("size = 1\n\nsize = 2\n", "size = compute(3)") == []


def test_a_line_that_is_like_two_is_not_sure() -> None:
    original = "send(alpha, beta, one)\n\nsend(alpha, beta, two)\n"
    assert changed(original, "send(alpha, beta, three)") == []
    assert spans(changed(original, "send(alpha, beta, one, three)")) == [(0, 1), (2, 3)]


def test_lines_outside_of_the_borders_do_not_change() -> None:
    guesses = placements_of(PYTHON)
    assert guesses.changed(0, ["LIMIT = 20"], low=1, high=14) == []


@pytest.mark.parametrize(
    "text", ["    total = sum(line.price for line in (order.lines", "LIMIT = max(", "LIMIT = {"]
)
def test_a_changed_line_has_the_brackets_of_the_old_one(text: str) -> None:
    assert changed(PYTHON, text) == []


def merged(original: str, update: str, language: str) -> str:
    lines = original.splitlines()
    plan = plan_merge(
        lines, read_snippet(update.splitlines(), lines, language=language), language=language
    )
    assert plan.best is not None
    assert not plan.is_unique
    return "\n".join(splice(lines, plan.best)) + "\n"


@pytest.mark.parametrize(
    ("original", "language", "update", "old", "new"),
    [
        (
            PYTHON,
            "python",
            "# ...\n    def open_file(self, path, mode):\n        # ...\n# ...\n",
            "def open_path(",
            "def open_file(",
        ),
        (
            TYPESCRIPT,
            "typescript",
            "// ...\n  async openFile(path: string, mode: Mode): Promise<File> {\n    // ...\n  }\n"
            "// ...\n",
            "async openPath(path: string, mode: Mode): Promise<void>",
            "async openFile(path: string, mode: Mode): Promise<File>",
        ),
        (
            GO,
            "go",
            "// ...\nfunc readBlocks(device *Device, size, count int) error {\n\t// ...\n}\n"
            "// ...\n",
            "func readBlock(device *Device, size int)",
            "func readBlocks(device *Device, size, count int)",
        ),
    ],
    ids=["python", "typescript", "go"],
)
def test_a_header_over_a_marker_gives_its_definition_another_name(
    original: str, language: str, update: str, old: str, new: str
) -> None:
    assert merged(original, update, language) == original.replace(old, new)


def headers(text: str, *, is_cut: bool = True) -> list[tuple[int, int]]:
    """The old headers that a new one may take the place of."""
    found = placements_of(PYTHON).of(
        0, text.splitlines(), low=0, high=14, has_definition=True, is_cut=is_cut
    )
    return [span for span in spans(found) if span[0] < span[1]]


def test_the_header_most_alike_comes_first() -> None:
    assert headers("    def open_file(self, path, mode):") == [(4, 5)]


@pytest.mark.parametrize(
    "text",
    [
        "def open_file(self, path, mode):",
        "    def weight_of_all(orders):",
        "    def open_file(self, path, mode):\n        self.mode = mode",
    ],
    ids=["depth", "other words", "two lines"],
)
def test_a_header_unlike_the_others_is_a_new_one(text: str) -> None:
    assert headers(text) == []


def test_a_whole_definition_is_no_header() -> None:
    assert headers("    def open_file(self, path, mode):", is_cut=False) == []
