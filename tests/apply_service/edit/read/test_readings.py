"""Updates in bad form are also read as what was meant; good ones keep their one reading."""

from __future__ import annotations

import pytest

from apply_service.edit.read.original_index import OriginalIndex
from apply_service.edit.read.readings import readings_of

FILE = "def total(values):\n    # now in cents\n    return sum(values)\n".splitlines()
TABBED = "func total(values []int) {\n\treturn sum(values)\n}\n".splitlines()


@pytest.mark.parametrize(
    ("update", "meant"),
    [
        ("1\tdef total(values):\n2\t    return 0", "def total(values):\n    return 0"),
        ("  9 | def total(values):\n 10 |     return 0", "def total(values):\n    return 0"),
        ("   9 def total(values):\n  10     return 0", "def total(values):\n    return 0"),
        ("9  def total(values):\n10      return 0", "def total(values):\n    return 0"),
        ("L1: def total(values):\nL2:     return 0", "def total(values):\n    return 0"),
        ("    return 0  # <- changed", "    return 0"),
        ("    # ADDED: no values\n    return 0", "    return 0"),
        ("def total(values):\n    ...", "def total(values):\n    # ... existing code ..."),
        ("def a(): pass\n... (unchanged)", "def a(): pass\n# ... existing code ..."),
        ("def a(): pass\n... rest of the file ...", "def a(): pass\n# ... existing code ..."),
        ("def a(): pass\n# the rest stays the same", "def a(): pass\n# ... existing code ..."),
        ("def total(values):\n\treturn 0", "def total(values):\n    return 0"),
        (
            "def total(values):\n  # now in cents\n  if values:\n    return 0",
            "def total(values):\n    # now in cents\n    if values:\n        return 0",
        ),
        ("        # now in cents\n        return 0", "    # now in cents\n    return 0"),
    ],
)
def test_bad_form_is_also_read_as_it_was_meant(update: str, meant: str) -> None:
    readings = readings_of(update.splitlines(), OriginalIndex(FILE), language="python")
    assert readings[0] == update.splitlines()
    assert meant.splitlines() in readings


def test_spaces_become_the_tabs_of_the_file() -> None:
    update = ["func total(values []int) {", "    if x {", "        return 0", "    }"]
    readings = readings_of(update, OriginalIndex(TABBED), language="go")
    assert readings[0] == [update[0], "\tif x {", "\t\treturn 0", "\t}"]


@pytest.mark.parametrize("file", [["all: test"], ["a:", "    b"]], ids=["no indent", "spaces"])
def test_tabs_may_be_meant_in_a_file_without_any(file: list[str]) -> None:
    update = ["all: test", "\tmake check"]
    assert readings_of(update, OriginalIndex(file), language=None)[0] == update


def test_a_comment_with_stars_has_no_unit_of_its_own() -> None:
    update = ["/*", " * Sums up.", " */", "func total(values []int) {"]
    assert readings_of(update, OriginalIndex(TABBED), language="go")[0] == update


def test_a_note_that_removes_something_is_no_remark() -> None:
    update = ["# ... existing code ...", "# remove total", "# ... existing code ..."]
    readings = readings_of(update, OriginalIndex(FILE), language="python")
    assert all("# remove total" in reading for reading in readings)


def test_an_update_in_good_form_has_one_reading() -> None:
    update = ["# ... existing code ...", *FILE[1:], "    return 0"]
    assert readings_of(update, OriginalIndex(FILE), language="python") == [update]


def test_numbers_that_fall_are_code() -> None:
    update = ["9: nine", "3: three", "1: one"]
    assert readings_of(update, OriginalIndex(FILE), language="yaml") == [update]
