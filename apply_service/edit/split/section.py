"""What an update of several files says about one of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FileAction = Literal["update", "add", "delete", "move"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSection:
    """The part of one file, which begins at line `number` of the update, from 1.

    `lines` stand below the heads: hunks, or for `add` the lines of the file without their signs. A
    file that moves may be changed as well. `has_final_newline` is that of a new file.
    """

    action: FileAction
    path: str
    number: int
    lines: tuple[str, ...]
    new_path: str | None = None
    has_final_newline: bool = True

    @property
    def is_changed(self) -> bool:
        """True if the part says more than that a file is moved or deleted."""
        return any(line.strip() for line in self.lines)
