"""One file of this machine that is to be edited: read now, perhaps replaced later."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from pathlib import Path

from apply_client.workspace.errors import FileMissingError
from apply_client.workspace.folder import DEFAULT_MAX_FILE_BYTES, Workspace, WorkspaceFile

_LOG = logging.getLogger(__name__)

PathLike = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A file as it was read; `label` is its name in diffs."""

    workspace: Workspace
    file: WorkspaceFile
    label: str

    @property
    def content(self) -> bytes:
        """The bytes that were read."""
        return self.file.content

    @property
    def place(self) -> Path:
        """Where the file is on this machine."""
        return self.workspace.root / self.file.path

    def replace(self, content: bytes) -> tuple[str, ...]:
        """Replace the file by `content` in one step; return losses in words.

        Raises ContentConflictError if the file has changed meanwhile, or another WorkspaceError.
        """
        if content == self.file.content:
            return ()
        return self.workspace.replace(self.file.path, content, expected_sha256=self.file.sha256)

    def replace_and_log(self, content: bytes) -> None:
        """Replace the file as `replace` does, and log losses as a warning."""
        for loss in self.replace(content):
            _LOG.warning("%s: %s", self.label, loss)


def open_file(path: PathLike, *, max_file_bytes: int = DEFAULT_MAX_FILE_BYTES) -> OpenFile:
    """Read a file; links are followed. Raises WorkspaceError."""
    named = Path(path)
    real = Path(os.path.realpath(named))
    workspace = Workspace(real.parent, max_file_bytes=max_file_bytes)
    label = real.name if named.is_absolute() else named.as_posix()
    try:
        return OpenFile(workspace, workspace.read(real.name), label)
    except FileMissingError as error:
        error.args = (f"{error}; for a new file, create it, empty",)
        raise
