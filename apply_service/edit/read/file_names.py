"""Names of files inside an update: they must be the file that the request edits."""

from __future__ import annotations

import re

from apply_service.edit.read.snippet_error import UnsupportedOperationError


def check_file_name(name: str, path: str | None, *, number: int) -> None:
    """Raise UnsupportedOperationError if line `number` of the update names another file.

    Folders may differ: agents write paths from the root of the project or of the disk.
    """
    base_name = _base_name(name)
    if path is None or "." not in base_name or base_name == _base_name(path):
        return
    raise UnsupportedOperationError(
        f"line {number} of the update names the file {name}, the request edits {path}; send the"
        " original of the file that the update is for"
    )


def _base_name(name: str) -> str:
    return re.split(r"[/\\]", name.strip("`*\"'# :\t"))[-1]
