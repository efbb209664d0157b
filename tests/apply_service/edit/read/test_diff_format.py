"""Diff-like updates are read whatever of a diff they have, and look-alikes stay text."""

from __future__ import annotations

import pytest

from apply_service.edit.read.segment import Snippet
from apply_service.edit.read.snippet import (
    MalformedSnippetError,
    NoMarkerError,
    NothingToKeepError,
    UnsupportedOperationError,
    read_snippet,
)

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

LIMIT_OLD = ("import sys", "", "LIMIT = 10")
LIMIT_NEW = ["import sys", "", "LIMIT = 20"]


def read(update: str, original: list[str] = ORIGINAL, path: str | None = "lib/x.py") -> Snippet:
    return read_snippet(update.splitlines(), original, path=path)


@pytest.mark.parametrize(
    "update",
    [
        "--- a/lib/x.py\n+++ b/lib/x.py\n@@ -2,3 +2,3 @@\n import sys\n \n-LIMIT = 10\n+LIMIT = 20",
        "diff --git a/x.py b/x.py\nindex 12ab34..56cd78 100644\n--- a/x.py\n+++ b/x.py\n"
        "@@ -2,3 +2,3 @@ import os\n import sys\n \n-LIMIT = 10\n+LIMIT = 20\n"
        "\\ No newline at end of file",
        "@@ -90,3 +90,3 @@\n import sys\n\n-LIMIT = 10\n+LIMIT = 20",
        "@@\n import sys\n\n-LIMIT = 10\n+LIMIT = 20",
        " import sys\n\n-LIMIT = 10\n+LIMIT = 20",
        "import sys\n\n-LIMIT = 10\n+LIMIT = 20",
        "import sys\n\n- LIMIT = 10\n+ LIMIT = 20",
        "```diff\n import sys\n\n-LIMIT = 10\n+LIMIT = 20\n```",
        "# ... existing code ...\nimport sys\n\n-LIMIT = 10\n+LIMIT = 20\n# ... existing code ...",
        " # ... existing code ...\n import sys\n \n-LIMIT = 10\n+LIMIT = 20\n # ...\n",
        "+# ... existing code ...\n import sys\n \n-LIMIT = 10\n+LIMIT = 20\n",
    ],
)
def test_one_change_in_many_dialects(update: str) -> None:
    snippet = read(update)
    assert snippet.format == "diff"
    (segment,) = snippet.segments
    assert segment.old == LIMIT_OLD
    assert segment.texts == LIMIT_NEW
    assert [line.role for line in segment.lines] == ["context", "context", "new"]
    assert (segment.has_gap_before, segment.has_gap_after) == (True, True)


@pytest.mark.parametrize(
    ("update", "hint"),
    [
        ("@@ -12,2 +12,2 @@\n-        print(number)\n+        print(count)", 12),
        ("@@ -4,0 +5 @@\n+STEP = 2", 5),
        ("@@ -0,0 +1 @@\n+import re", 1),
        ("@@ def second(count):\n-        print(number)\n+        print(count)", 12),
        ("@@ second(count) @@\n-        print(number)\n+        print(count)", 12),
        ("@@ return @@\n-        print(number)\n+        print(count)", None),
        ("@@ x = -3 @@\n-        print(number)\n+        print(count)", None),
    ],
)
def test_the_header_is_a_hint(update: str, hint: int | None) -> None:
    assert [segment.old_line_hint for segment in read(update).segments] == [hint]


@pytest.mark.parametrize(
    ("update", "old", "new"),
    [
        (
            "-    return name\n+    return name.lower()",
            "    return name",
            "    return name.lower()",
        ),
        ("-   return name\n+   return name.lower()", "    return name", "    return name.lower()"),
        (
            "-     return name\n+     return name.lower()",
            "    return name",
            "    return name.lower()",
        ),
    ],
)
def test_the_sign_stands_before_on_or_beside_the_indentation(
    update: str, old: str, new: str
) -> None:
    (segment,) = read(update).segments
    assert segment.old == (old,)
    assert segment.texts == [new]


def test_lines_are_only_added() -> None:
    (segment,) = read(
        "def first(path):\n+    path = os.fspath(path)\n    name = os.path.basename(path)"
    ).segments
    assert segment.old == ("def first(path):", "    name = os.path.basename(path)")
    assert [line.role for line in segment.lines] == ["context", "new", "context"]


def test_a_hunk_is_cut_where_its_old_lines_stand_apart() -> None:
    update = (
        "-LIMIT = 10\n+LIMIT = 20\n-    return name\n+    return name.lower()\n"
        " def third():\n-    return sys.argv\n+    return sys.argv[1:]"
    )
    assert [(segment.old, segment.texts) for segment in read(update).segments] == [
        (("LIMIT = 10",), ["LIMIT = 20"]),
        (("    return name",), ["    return name.lower()"]),
        (("def third():", "    return sys.argv"), ["def third():", "    return sys.argv[1:]"]),
    ]


def test_a_misremembered_context_line_does_not_cut() -> None:
    update = " def first(path):\n     naem = os.path\n-    return name\n+    return name.lower()"
    (segment,) = read("@@\n" + update).segments
    assert len(segment.old or ()) == 3


def test_a_new_line_in_front_of_what_it_replaces_stays_with_it() -> None:
    update = "@@\n LIMIT = 10\n+    return name.lower()\n-    return name"
    assert [segment.texts for segment in read(update).segments] == [
        ["LIMIT = 10"],
        ["    return name.lower()"],
    ]


@pytest.mark.parametrize(
    ("path", "original", "update"),
    [
        ("a.md", ["# Fruit", "", "- apples", "- pears"], "- apples\n- plums\n- pears"),
        ("a.md", ["# Fruit", "apples", "pears"], "# Fruit\n- apples\n- pears"),
        ("a.md", ["# Fruit", "", "Red ones"], "# Fruit\n\nRed ones\n+ apples\n+ pears"),
        ("a.yml", ["steps:", "- uses: a", "  name: check"], "steps:\n- uses: a\n- name: check\n"),
        ("a.sql", ["SELECT price", "FROM items"], "--SELECT all\nSELECT price, name\nFROM items"),
        (
            "a.lua",
            ["local speed = 1", "return speed"],
            "-- the speed\nlocal speed = 2\nreturn speed",
        ),
        ("a.csv", ["name,price", "5,10", "6,12"], "name,price\n-5,10\n-6,12"),
        ("a.txt", ["--verbose", "--quiet"], "--verbose\n--silent\n--quiet"),
        ("a.css", [":root {", "color: red;", "}"], ":root {\n--color: red;\ncolor: red;\n}"),
        ("a.rst", ["Title here", "-----", "Text here"], "Title here\n---------\nText here"),
        ("a.patch", ["-LIMIT = 10", "+LIMIT = 20"], "-LIMIT = 10\n+LIMIT = 30"),
        ("a.hs", ["total = first", "+ second"], "total = first\n+ second\n+ third"),
        ("a.py", ["@@ marker", "value = 1"], "@@ marker\nvalue = 2"),
    ],
)
def test_look_alikes_are_text(path: str, original: list[str], update: str) -> None:
    snippet = read(update, original, path)
    assert snippet.format in ("whole", "fragment")
    assert [segment.texts for segment in snippet.segments] == [update.splitlines()]


def test_list_items_of_the_original_are_context() -> None:
    original = ["steps:", "- uses: checkout", "- run: make", "- run: make test"]
    (segment,) = read(
        "- uses: checkout\n-- run: make\n+- run: make all", original, "a.yml"
    ).segments
    assert segment.old == ("- uses: checkout", "- run: make")
    assert segment.texts == ["- uses: checkout", "- run: make all"]


def test_markers_that_the_original_has_are_context_of_a_hunk() -> None:
    original = ['TEXT = """', "# ... existing code ...", "old", '"""']
    (segment,) = read("@@ -2,2 +2,2 @@\n # ... existing code ...\n-old\n+new", original).segments
    assert segment.texts == ["# ... existing code ...", "new"]


@pytest.mark.parametrize(
    ("update", "message"),
    [
        (
            "--- a/one.py\n+++ b/one.py\n@@ -1 +1 @@\n-import os\n+import re",
            "names the file one.py",
        ),
        (
            "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-import os\n+import re\n"
            "--- a/y.py\n+++ b/y.py\n@@ -1 +1 @@\n-a\n+b",
            "changes 2 files",
        ),
        ("--- a/x.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-import os", "deletes x.py"),
    ],
)
def test_a_diff_of_something_else_is_refused(update: str, message: str) -> None:
    with pytest.raises(UnsupportedOperationError, match=message):
        read(update)


def test_names_that_are_no_paths_pass() -> None:
    snippet = read("--- original.py\n+++ updated.py\n@@ -1 +1 @@\n-import os\n+import re")
    assert snippet.segments[0].old == ("import os",)


def test_a_diff_of_headers_alone_is_refused() -> None:
    with pytest.raises(MalformedSnippetError, match="begins with"):
        read("--- a/x.py\n+++ b/x.py\n")


def test_a_diff_may_write_a_new_file() -> None:
    snippet = read("--- /dev/null\n+++ b/lib/x.py\n@@ -0,0 +1,2 @@\n+a = 1\n+b = 2", [])
    assert snippet.format == "whole"
    assert snippet.segments[0].texts == ["a = 1", "b = 2"]
    with pytest.raises(NothingToKeepError):
        read("--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a = 1\n+b = 2", [])


def test_signs_without_evidence_are_not_taken_off() -> None:
    with pytest.raises(NoMarkerError):
        read("-nothing of this\n-stands in the file")


def test_a_misremembered_line_that_is_replaced_is_not_written_with_its_sign() -> None:
    (segment,) = read("# ...\n-    return nmae\n+    return name.lower()\n# ...").segments
    assert (segment.old, segment.texts) == (("    return nmae",), ["    return name.lower()"])


def test_short_lines_are_evidence_too() -> None:
    (segment,) = read("-x = 1\n+x = 2", ["import sys", "x = 1"]).segments
    assert (segment.old, segment.texts) == (("x = 1",), ["x = 2"])
