"""Updates of several files: whose each part is, and what cannot be told is refused."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apply_service.edit.read.snippet_error import (
    MalformedSnippetError,
    SnippetError,
    UnsupportedOperationError,
)
from apply_service.edit.split.split import FileChange, split_update

SENT = {"src/a.py": True, "b.py": True, "empty.py": False}
PATCH = """\
*** Begin Patch
*** Update File: a.py
@@ def f
-x = 1
+x = 2
*** Add File: new.py
+a

+b
*** Delete File: gone.py
*** Update File: b.py
*** Move to: c.py
@@
-1
+2
*** Update File: src/a.py
@@ def g
+y = 3
*** Add File: __init__.py
*** End Patch"""
DIFF = """\
diff --git a/src/a.py b/src/a.py
index 1234567..5678901 100644
--- a/src/a.py
+++ b/src/a.py
@@ -1,2 +1,2 @@
--- old
+++ new
 kept
diff --git a/pkg/__init__.py b/pkg/__init__.py
new file mode 100644
index 0000000..e69de29
diff --git a/new.py b/new.py
new file mode 100644
--- /dev/null
+++ b/new.py
@@ -0,0 +1,2 @@
+one
+
diff --git a/gone.py b/gone.py
deleted file mode 100644
--- a/gone.py
+++ /dev/null
@@ -1 +0,0 @@
-bye
diff --git a/b.py b/c.py
similarity index 100%
rename from b.py
rename to c.py
"""


def told(changes: list[FileChange]) -> list[tuple[str, str, str | None]]:
    return [(change.action, change.path, change.new_path) for change in changes]


def test_a_patch_is_cut_at_its_files() -> None:
    changes = split_update(PATCH, has_text=SENT)
    assert told(changes) == [
        ("update", "src/a.py", None),
        ("add", "new.py", None),
        ("delete", "gone.py", None),
        ("move", "b.py", "c.py"),
        ("add", "__init__.py", None),
    ]
    updated, added, deleted, moved, blank = changes
    assert updated.update is not None
    assert updated.update.split("\n")[2:-2] == [
        "@@ def f",
        "-x = 1",
        "+x = 2",
        "@@ def g",
        "+y = 3",
    ]
    assert added.update is not None
    assert added.update.split("\n")[2:-2] == ["+a", "+", "+b"]
    assert moved.update == "*** Begin Patch\n*** Update File: b.py\n@@\n-1\n+2\n*** End Patch\n"
    assert (deleted.update, blank.update) == (None, None)


def test_a_diff_is_cut_at_its_files() -> None:
    changes = split_update(DIFF, has_text=SENT)
    assert told(changes) == [
        ("update", "src/a.py", None),
        ("add", "pkg/__init__.py", None),
        ("add", "new.py", None),
        ("delete", "gone.py", None),
        ("move", "b.py", "c.py"),
    ]
    assert changes[0].update == (
        "--- a/src/a.py\n+++ b/src/a.py\n@@ -1,2 +1,2 @@\n--- old\n+++ new\n kept"
    )
    assert (changes[1].update, changes[4].update) == (None, None)
    assert changes[2].update == "*** Begin Patch\n*** Add File: new.py\n+one\n+\n*** End Patch\n"


def test_a_new_file_has_the_final_newline_that_its_diff_says() -> None:
    update = "--- /dev/null\n+++ b/n.py\n@@ -0,0 +1 @@\n+x\n"
    (ended,) = split_update(update, has_text=SENT)
    (cut,) = split_update(f"{update}\\ No newline at end of file\n", has_text=SENT)
    assert (ended.update, cut.update) == (f"{cut.update}\n", (ended.update or "").rstrip("\n"))


def test_a_plain_diff_behind_an_empty_file_of_git_s_is_another_file() -> None:
    update = (
        "diff --git a/e.py b/e.py\nnew file mode 100644\n--- b.py\n+++ b.py\n@@ -1 +1 @@\n-1\n+2"
    )
    assert told(split_update(update, has_text=SENT)) == [
        ("add", "e.py", None),
        ("update", "b.py", None),
    ]


@pytest.mark.parametrize("update", [PATCH, DIFF])
@pytest.mark.parametrize("wrap", ["```diff\n{}\n```\n", "\n{}\n\n", "{}"])
def test_fences_and_line_endings_around_it_change_nothing(update: str, wrap: str) -> None:
    plain = split_update(update, has_text=SENT)
    wrapped = wrap.format(update).replace("\n", "\r\n")
    found = split_update(wrapped, has_text=SENT)
    assert told(found) == told(plain)
    stripped = [(change.update or "").rstrip("\n") for change in found]
    assert stripped == [(change.update or "").rstrip("\n") for change in plain]


@pytest.mark.parametrize(
    ("update", "error", "text"),
    [
        ("x = 1\n", MalformedSnippetError, "names none"),
        ("*** Begin Patch\n*** End Patch", MalformedSnippetError, "names no file"),
        ("*** Begin Patch\n*** Update File: b.py\n-1", MalformedSnippetError, "without `*** End"),
        ("*** Begin Patch\nhello\n*** End Patch", MalformedSnippetError, "line 2"),
        ("*** Update File:  \n-1\n+2", MalformedSnippetError, "names no file"),
        ("*** Add File: n.py\nx = 1", MalformedSnippetError, "line 2"),
        ("*** Delete File: b.py\n-x", MalformedSnippetError, "a deletion has none"),
        ("*** Update File: z.py\n-1\n+2", UnsupportedOperationError, "none of the 3 files"),
        ("*** Add File: b.py\n+1", UnsupportedOperationError, "was sent with text"),
        ("*** Delete File: b.py\n*** Add File: empty.py\n+1\n*** Delete File: b.py",
         MalformedSnippetError, "names b.py again"),
        ("*** Update File: b.py\n*** Move to: a.py\n-1\n+2\n*** Add File: a.py\n+1",
         UnsupportedOperationError, "was sent with text"),
        ("*** Update File: b.py\n*** Move to: src/a.py\n-1\n+2",
         UnsupportedOperationError, "no free path"),
        ("hello\n--- a/b.py\n+++ b/b.py\n@@ -1 +1 @@\n-1\n+2", MalformedSnippetError, "line 1"),
        ("diff --git a/b.py b/b.py\nold mode 100644\nnew mode 100755\n",
         UnsupportedOperationError, "rights"),
        ("diff --git a/b.png b/b.png\nBinary files a/b.png and b/b.png differ\n",
         UnsupportedOperationError, "binary"),
    ],
)  # fmt: skip
def test_what_cannot_be_told_is_refused(update: str, error: type[SnippetError], text: str) -> None:
    with pytest.raises(error) as caught:
        split_update(update, has_text=SENT)
    assert text in str(caught.value)


def test_a_name_that_fits_two_files_is_none_of_them() -> None:
    with pytest.raises(UnsupportedOperationError):
        split_update("*** Update File: a.py\n-1\n+2", has_text={"x/a.py": True, "y/a.py": True})


PIECES = [*PATCH.split("\n"), *DIFF.split("\n"), "```", "", "+++ b/b.py", "--- a/b.py"]


@given(lines=st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=20))
def test_any_lines_are_split_or_refused(lines: list[str]) -> None:
    try:
        changes = split_update("\n".join(lines), has_text=SENT)
    except SnippetError:
        return
    paths = sorted(change.path for change in changes)
    assert changes
    assert all(one < other for one, other in pairwise(paths)), "each file once"
