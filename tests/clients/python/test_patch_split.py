"""Patches of several files become one change a file, or are refused with the line."""

from __future__ import annotations

import pytest
from apply_client.workspace.patch_split import FileChange, PatchError, is_patch, split_patch

PATCH = """\
*** Begin Patch
*** Update File: src/a.py
@@ def first():
-    return 1
+    return 2
*** Add File: src/new.py
+import os
+

+print(os.name)
*** Delete File: old.py
*** Update File: src/b.py
@@
 *** Add File: this is a line of the file
-x = 1
+x = 2
*** End of File
*** End Patch
"""


def test_a_patch_of_several_files_is_split() -> None:
    first, added, deleted, last = split_patch(PATCH) or ()
    assert first == FileChange(
        "update",
        "src/a.py",
        "*** Begin Patch\n*** Update File: src/a.py\n@@ def first():\n-    return 1\n"
        "+    return 2\n*** End Patch",
    )
    assert added == FileChange("add", "src/new.py", "import os\n\n\nprint(os.name)\n")
    assert deleted == FileChange("delete", "old.py", "")
    assert last.path == "src/b.py"
    assert " *** Add File: this is a line of the file\n" in last.text
    assert last.text.endswith("*** End of File\n*** End Patch")


def test_the_parts_are_patches_again() -> None:
    for change in split_patch(PATCH) or ():
        if change.action == "update":
            assert split_patch(change.text) == (change,)


def test_line_ends_of_windows_are_kept() -> None:
    changes = split_patch(PATCH.replace("\n", "\r\n"))
    assert changes is not None
    assert [change.path for change in changes] == ["src/a.py", "src/new.py", "old.py", "src/b.py"]
    assert changes[1].text.startswith("import os\r\n")


@pytest.mark.parametrize(
    "update",
    [
        "# ... existing code ...\nx = 1\n",
        "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-x\n+y\n",
        "",
        "x = '*** Begin Patch'\n",
    ],
)
def test_other_updates_are_no_patches(update: str) -> None:
    assert not is_patch(update)
    assert split_patch(update) is None


@pytest.mark.parametrize(
    "update",
    [
        f"```diff\n{PATCH}```\n",
        f"\n\n{PATCH}\n\n",
        PATCH.replace("*** Begin Patch\n", "").replace("*** End Patch\n", ""),
        PATCH.replace("*** Delete", "*** End Patch\n*** Begin Patch\n*** Delete"),
    ],
    ids=["fenced", "blank lines", "without begin and end", "two in a row"],
)
def test_wrappings(update: str) -> None:
    changes = split_patch(update)
    assert changes is not None
    assert [change.action for change in changes] == ["update", "add", "delete", "update"]
    assert changes[1].text == "import os\n\n\nprint(os.name)\n"


def patch(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


REFUSED = {
    "move": (
        patch("*** Update File: a.py", "*** Move to: b.py", "@@", "-x", "+y"),
        r"line 3 .*moves a file",
    ),
    "move in one line": (patch("*** Move File: a.py -> b.py"), "moves a file"),
    "no end": ("*** Begin Patch\n*** Update File: a.py\n-x\n+y", "without `\\*\\*\\* End Patch`"),
    "no file": (patch(), "names no file"),
    "no path": (patch("*** Update File: "), "line 2 of the patch names no file"),
    "lines before a file": (patch("-x", "*** Update File: a.py"), "line 2 .*belongs to no file"),
    "lines after the end": (patch("*** Delete File: a.py") + "\nDone.", "line 4 .*after"),
    "lines of a deletion": (patch("*** Delete File: a.py", "-x"), "line 3 .*has no lines"),
    "lines of a new file": (patch("*** Add File: a.py", "x = 1"), "does not begin with"),
    "deleted and added": (
        patch("*** Delete File: a.py", "*** Add File: a.py", "+x"),
        "names a.py again, to add it",
    ),
    "updated and deleted": (
        patch("*** Update File: a.py", "-x", "*** Delete File: a.py"),
        "names a.py again, to delete it",
    ),
    "deleted twice": (patch("*** Delete File: a.py", "*** Delete File: a.py"), "again"),
    "too many": (patch(*(f"*** Delete File: {n}" for n in range(201))), "201 files, at most 200"),
}


@pytest.mark.parametrize(("update", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused(update: str, message: str) -> None:
    with pytest.raises(PatchError, match=message):
        split_patch(update)


def test_a_file_may_be_updated_twice() -> None:
    changes = split_patch(
        patch("*** Update File: a.py", "-x", "+y", "*** Update File: a.py", "-y", "+z")
    )
    assert changes is not None
    assert [change.path for change in changes] == ["a.py", "a.py"]


def test_an_empty_file_is_added() -> None:
    assert split_patch(patch("*** Add File: py.typed")) == (FileChange("add", "py.typed", ""),)
