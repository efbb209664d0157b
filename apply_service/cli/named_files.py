"""The files that a patch or diff changes, held against those that the command names."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from apply_service.shown_text import shown_line

_HEAD = re.compile(
    r"^\*\*\* (?P<action>Update|Add|Delete) File: (?P<patched>.+)$"
    r"|^--- (?:a/)?(?P<old>[^\t\r\n]++).*+\r?\n\+\+\+ ",
    re.MULTILINE,
)


def why_incomplete(update: str, files: Sequence[str]) -> str | None:
    """What to say of an update of several files that are not all named; None if nothing is wrong.

    A single name in an update may be spelled as its writer likes.
    """
    is_added = {
        (match["patched"] or match["old"]).rstrip(): match["action"] == "Add"
        for match in _HEAD.finditer(update)
        if match["old"] != "/dev/null"
    }
    if len(is_added) < 2:
        return None
    names = [shown_line(name) for name in is_added]
    left_out = [name for name in is_added if not any(_is_same(name, file) for file in files)]
    if not left_out:
        return None
    advice = [
        f"name all of them: apply {' '.join(names)}",
        *(_advice(name, is_new=is_added[name]) for name in left_out if not os.path.exists(name)),
    ]
    return f"the update changes {', '.join(names)}; {'; '.join(advice)}"


def _advice(name: str, *, is_new: bool) -> str:
    name = shown_line(name)
    if is_new:
        return f"{name} is new, so create it, empty"
    return f"{name} is not there: go to the folder that has it, or take it out of the update"


def _is_same(name: str, file: str) -> bool:
    """True if one is the other with more folders before it."""
    short, long = sorted((PurePosixPath(name).parts, Path(file).parts), key=len)
    return long[len(long) - len(short) :] == short
