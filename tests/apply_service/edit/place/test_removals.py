"""What directives and notes take away, and which blank lines stay."""

from __future__ import annotations

import pytest

from apply_service.edit.place.merge import MergePlan, plan_merge, splice
from apply_service.edit.read.snippet import read_snippet

SHOP = """\
import math


class Store:
    def load(self):
        return self.path.read_text()

    # Empties it.
    def clear(self):
        self.path.write_text("")

    def size(self):
        return len(self.load())


def round_up(value, step):
    return math.ceil(value / step) * step


def round_down(value, step):
    return math.floor(value / step) * step


def last(values):
    return values[-1]
"""

CART = """\
const one = () => 1;
const two = () => 2;
const three = () => 3;

export class Cart {
  add(item: string) {
    this.items.push(item);
  }

  drop(item: string) {
    this.items.pop();
  }

  clear() {
    this.items = [];
  }
}
"""


def plan(update: str, original: str = SHOP, language: str = "python") -> MergePlan:
    lines = original.splitlines()
    snippet = read_snippet(update.splitlines(), lines, language=language)
    return plan_merge(lines, snippet, language=language)


def merged(found: MergePlan) -> str:
    assert found.best is not None
    return "".join(f"{line}\n" for line in splice(found.original_lines, found.best))


def without(*pieces: str, original: str = SHOP) -> str:
    for piece in pieces:
        assert original.count(piece) == 1
        original = original.replace(piece, "")
    return original


UP = "def round_up(value, step):\n    return math.ceil(value / step) * step\n\n\n"
DOWN = "def round_down(value, step):\n    return math.floor(value / step) * step\n\n\n"
LAST = "\n\ndef last(values):\n    return values[-1]\n"
CLEAR = '    # Empties it.\n    def clear(self):\n        self.path.write_text("")\n\n'
SIZE = "\n    def size(self):\n        return len(self.load())\n"
UP_END = "    return math.ceil(value / step) * step\n"


@pytest.mark.parametrize(
    "update",
    [
        f"# ...\n{UP_END}\n\n# round_down removed\n\n\ndef last(values):\n# ...",
        f"# ...\n{UP_END}\n# round_down removed\n\ndef last(values):\n# ...",
        f"# ...\n{UP_END}# round_down removed\ndef last(values):\n# ...",
        f"# ...\n{UP_END}\n\n\n# round_down removed\n\n\n\ndef last(values):\n# ...",
        f"{UP}# round_down removed\n\n\ndef last(values):\n    return values[-1]",
        "# ...\n\n# round_down removed\n\n# ...",
        "# ...\n# remove round_down\n# ...",
    ],
)
def test_the_usual_blank_lines_stay_whatever_the_note_has_around_it(update: str) -> None:
    found = plan(update)
    assert merged(found) == without(DOWN)
    assert found.is_unique


@pytest.mark.parametrize(
    ("update", "result"),
    [
        ("# ...\n# round_up and round_down removed\n# ...", without(UP, DOWN)),
        ("# ...\n# remove round_up\n# remove round_down\n# ...", without(UP, DOWN)),
        ("# ...\n# round_up removed\n# round_down removed\n# ...", without(UP, DOWN)),
        ("# ...\n# round_down, round_up removed\n# ...", without(UP, DOWN)),
        ("# ...\n    # clear and size removed\n# ...", without("\n" + CLEAR + SIZE[1:])),
        ("# ...\n    # size and round_up removed\n# ...", without(SIZE, UP)),
        ("# ...\n# round_down and last removed\n# ...", without("\n\n" + DOWN[:-2], LAST)),
        ("# ...\n# removed: clear(), round_up()\n# ...", without(CLEAR, UP)),
    ],
)
def test_of_neighbours_the_blank_lines_between_them_go_too(update: str, result: str) -> None:
    found = plan(update)
    assert merged(found) == result
    assert found.is_unique


def test_at_the_border_of_a_block_or_file_no_blank_line_stays() -> None:
    size_last = '# ...\n        self.path.write_text("")\n\n    # size removed\n\n\n'
    assert merged(plan(f"{size_last}def round_up(value, step):\n# ...")) == without(SIZE)
    down_end = "    return math.floor(value / step) * step\n"
    assert merged(plan(f"# ...\n{down_end}\n\n# last removed\n")) == without(LAST)
    clear = "\n  clear() {\n    this.items = [];\n  }\n"
    update = "// ...\n    this.items.pop();\n  }\n\n  // clear() deleted\n}\n"
    assert merged(plan(update, CART, "typescript")) == without(clear, original=CART)
    drop = "\n  drop(item: string) {\n    this.items.pop();\n  }\n"
    update = "// ...\n    this.items.push(item);\n  }\n\n  // [drop, clear removed]\n}\n"
    assert merged(plan(update, CART, "typescript")) == without(drop, clear, original=CART)


def test_lines_without_blank_ones_between_them_get_none() -> None:
    for gap in ("\n", "\n\n"):
        update = f"const one = () => 1;{gap}// two removed{gap}const three = () => 3;\n// ..."
        found = plan(update, CART, "typescript")
        assert merged(found) == without("const two = () => 2;\n", original=CART)


def test_around_a_note_the_update_may_change_lines() -> None:
    found = plan(
        "# ...\ndef round_up(value, step=1):\n" + UP_END + "\n\n# round_down removed\n\n\n"
        "def last(values):\n    return values[-1] if values else None\n"
    )
    changed = without(DOWN).replace("round_up(value, step)", "round_up(value, step=1)")
    assert merged(found) == changed.replace("values[-1]", "values[-1] if values else None")
    assert found.is_unique


def test_a_new_definition_may_follow_a_note() -> None:
    new = "def nearest(value, step):\n    return round(value / step) * step\n\n\n"
    found = plan(f"# ...\n{UP}# round_down removed\n\n\n{new}def last(values):\n# ...")
    assert merged(found) == SHOP.replace(DOWN, new)


def test_a_whole_file_with_a_note_lacks_the_definition_and_the_note() -> None:
    found = plan(SHOP.replace(DOWN, "# round_down removed\n\n\n").replace("[-1]", "[-2]"))
    assert merged(found) == without(DOWN).replace("[-1]", "[-2]")


def test_a_note_that_fits_twice_is_one_doubt() -> None:
    original = SHOP.replace("def last(values):", "def round_down(value):")
    found = plan("# ...\n# round_up and round_down removed\n# ...", original)
    assert [finding.code for finding in found.findings] == ["ambiguous_removal"]
    assert "20, 24" in found.findings[0].message


def test_a_directive_for_several_things_that_are_not_there_is_one_doubt() -> None:
    found = plan("# ...\n# remove archive!\n# ...\n# remove restore!\n# ...")
    assert [(one.code, one.line) for one in found.findings] == [
        ("removal_not_found", 2),
        ("removal_not_found", 4),
    ]


def test_a_method_goes_by_its_name_where_its_definition_has_the_type_in_front() -> None:
    original = "package a\n\nfunc (s *Server) Open() {\n\ts.open()\n}\n\n"
    close = "// Close closes.\nfunc (s *Server) Close() {\n\ts.close()\n}\n\n"
    run = "func (s *Server) Run() {\n\ts.run()\n}\n"
    for note in ("remove Close", "Server.Close removed", "[Close removed]"):
        found = plan(f"// ...\n// {note}\n// ...", original + close + run, "go")
        assert merged(found) == original + run


@pytest.mark.parametrize(
    "comment",
    ["# Remove the rounding helpers", "# Deleted the code for rounding.", "# [helpers removed]"],
)
def test_a_comment_alone_that_asks_for_a_removal_is_not_passed_over(comment: str) -> None:
    found = plan(
        f"# ...\n        return len(self.load())\n\n\n{comment}\n\n\ndef last(values):\n# ...\n"
    )
    (finding,) = [one for one in found.findings if one.code == "ambiguous_removal"]
    assert comment in finding.message
    assert finding.line == 5
    assert not found.is_unique


@pytest.mark.parametrize(
    "shown",
    [
        "    # Remove what is left.\n    values.clear()\n",
        "\n    # What nobody needs is removed by hand.\n\n    values.clear()\n",
        "\n    # Nothing to remove.\n\n    values.clear()\n",
    ],
)
def test_a_comment_about_removing_is_a_comment(shown: str) -> None:
    found = plan(f"# ...\ndef last(values):\n{shown}    return values[-1]\n")
    assert "ambiguous_removal" not in [one.code for one in found.findings]
    assert merged(found) == SHOP.replace("    return values[-1]", f"{shown}    return values[-1]")
