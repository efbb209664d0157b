"""Patches are read with the headers that narrow the place of their hunks."""

from __future__ import annotations

import pytest

from apply_service.edit.read.segment import Snippet
from apply_service.edit.read.snippet import (
    MalformedSnippetError,
    UnsupportedOperationError,
    read_snippet,
)

ORIGINAL = """\
class Reader:
    def run(self):
        return 1


class Writer:
    def run(self):
        return 2

    def stop(self):
        return 3
""".splitlines()


def read(body: str, original: list[str] = ORIGINAL) -> Snippet:
    update = f"*** Begin Patch\n*** Update File: lib/x.py\n{body}\n*** End Patch"
    return read_snippet(update.splitlines(), original, path="lib/x.py")


def test_hunks_carry_old_and_new_lines() -> None:
    snippet = read("@@ def stop(self):\n-        return 3\n+        return 4\n")
    assert snippet.format == "patch"
    (segment,) = snippet.segments
    assert (segment.old, segment.texts) == (("        return 3",), ["        return 4"])
    assert segment.old_line_hint == 10


@pytest.mark.parametrize(
    ("headers", "hint"),
    [
        ("@@", None),
        ("@@ def run(self):", None),
        ("@@ class Writer:", 6),
        ("@@ class Writer:\n@@     def run(self):", 7),
        ("@@ class Writer:\n@@ no such line", 6),
        ("@@ class Writer", 6),
    ],
)
def test_stacked_headers_narrow_the_place(headers: str, hint: int | None) -> None:
    (segment,) = read(f"{headers}\n-        return 2\n+        return 4").segments
    assert segment.old_line_hint == hint


def test_the_first_hunk_needs_no_header_and_the_last_may_end_the_file() -> None:
    snippet = read(
        " class Reader:\n+    name = 1\n     def run(self):\n"
        "@@\n     def stop(self):\n-        return 3\n+        return 4\n*** End of File"
    )
    assert [segment.has_gap_after for segment in snippet.segments] == [True, False]
    assert snippet.segments[0].texts == ["class Reader:", "    name = 1", "    def run(self):"]


def test_the_frame_may_be_left_out() -> None:
    update = ["*** Update File: x.py", "@@", "-        return 3", "+        return 4"]
    assert read_snippet(update, ORIGINAL, path="lib/x.py").format == "patch"


def test_a_patch_may_add_the_file_when_there_is_none() -> None:
    update = ["*** Begin Patch", "*** Add File: x.py", "+a = 1", "+", "+b = 2", "*** End Patch"]
    snippet = read_snippet(update, [], path="x.py")
    assert (snippet.format, snippet.segments[0].texts) == ("whole", ["a = 1", "", "b = 2"])


@pytest.mark.parametrize(
    "operation",
    ["Add File: lib/y.py", "Delete File: lib/x.py", "Move to: lib/y.py", "Update File: lib/y.py"],
)
def test_other_operations_are_refused(operation: str) -> None:
    with pytest.raises(UnsupportedOperationError, match=f"line 5 of the update .*{operation}"):
        read(f"-        return 3\n+        return 4\n*** {operation}\n@@\n-a\n+b")


def test_a_patch_of_another_file_is_refused() -> None:
    update = ["*** Update File: y.py", "@@", "-        return 3", "+        return 4"]
    with pytest.raises(UnsupportedOperationError, match=r"names the file y\.py"):
        read_snippet(update, ORIGINAL, path="lib/x.py")


@pytest.mark.parametrize(
    ("update", "message"),
    [
        ("*** Begin Patch\n*** Update File: x.py\n@@\n-        return 3", "without `.*End Patch`"),
        ("*** Begin Patch\n@@\n-a\n*** End Patch\nx = 1", "line 5 of the update stands after"),
        ("*** Begin Patch\n@@ class Reader:\n*** End Patch", "lines of the patch begins with"),
    ],
)
def test_a_broken_patch_is_refused(update: str, message: str) -> None:
    with pytest.raises(MalformedSnippetError, match=message):
        read_snippet(update.splitlines(), ORIGINAL, path="x.py")


def test_a_heading_in_several_places_is_the_one_below_the_last_heading() -> None:
    first, second = read(
        "@@ class Writer:\n-        return 2\n+        return 4\n"
        "@@ def stop(self):\n-        return 3\n+        return 5",
        [*ORIGINAL, "", "class Idler:", "    def stop(self):", "        return 3"],
    ).segments
    assert (first.old_line_hint, second.old_line_hint) == (6, 10)
    assert first.is_below_hint
    assert second.is_below_hint


def test_a_patch_may_stand_in_a_here_document() -> None:
    patch = "*** Begin Patch\n*** Update File: x.py\n@@\n-        return 2\n+        return 4\n"
    update = f"apply_patch <<'EOF'\n{patch}*** End Patch\nEOF"
    snippet = read_snippet(update.splitlines(), ORIGINAL, path="lib/x.py")
    assert snippet.format == "patch"
    assert [segment.old for segment in snippet.segments] == [("        return 2",)]


@pytest.mark.parametrize("name", ["/home/me/app/lib/x.py", "x.py", "./lib/x.py", "b/lib/x.py"])
def test_a_path_may_be_the_end_of_another_one(name: str) -> None:
    update = f"*** Begin Patch\n*** Update File: {name}\n-        return 2\n*** End Patch"
    assert read_snippet(update.splitlines(), ORIGINAL, path="lib/x.py").segments


def test_a_patch_of_a_file_with_the_same_name_elsewhere_is_refused() -> None:
    update = "*** Begin Patch\n*** Update File: app/x.py\n-        return 2\n*** End Patch"
    with pytest.raises(UnsupportedOperationError, match=r"names the file app/x\.py"):
        read_snippet(update.splitlines(), ORIGINAL, path="lib/x.py")
