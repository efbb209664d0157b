"""Writes the result of `apply --write` into the file that the edit was made for."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

from apply_service.cli.careful_files.anchored_folder import PLATFORM, Abilities, AnchoredFolder
from apply_service.cli.careful_files.atomic_file import FileChangedError, is_read_only
from apply_service.cli.careful_files.atomic_file import replace_file as replace_in_folder
from apply_service.shown_text import shown_line


class FileWriteError(Exception):
    """The file was not written; it is as it was."""


def write_result(
    path: Path, content: bytes, *, expected: bytes, abilities: Abilities = PLATFORM
) -> tuple[str, ...]:
    """Write `content` in place of `expected`; in words, what of the file could not be kept.

    Owner, mode and a symbolic link to the file stay. Raises FileWriteError if the file is
    read-only, has changed since it was read, or its folder takes no new file.
    """
    target, name = Path(os.path.realpath(path)), shown_line(path)
    try:
        with closing(AnchoredFolder.open_root(target.parent, abilities=abilities)) as folder:
            if is_read_only(folder, target.name):
                raise FileWriteError(f"{name} is read-only; make it writable first")
            return replace_in_folder(folder, target.name, content, expected=expected)
    except FileChangedError as error:
        raise FileWriteError(
            f"{name} has changed since it was read{error.note}; run the command again"
        ) from error
    except OSError as error:
        raise FileWriteError(
            f"cannot write {name}: {error.strerror or error}; see that its folder takes new files"
            " and the disk has room, or leave --write out and take the text from stdout"
        ) from error
