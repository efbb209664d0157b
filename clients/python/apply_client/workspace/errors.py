"""Errors of a workspace's files; nothing was written when one of these is raised.

ApplyClientError ← WorkspaceError
WorkspaceError ← PathRefusedError, FileMissingError, FilePresentError, NotAFileError,
    FileTooLargeError, ContentConflictError, FileAccessError
"""

from __future__ import annotations

from apply_client.errors import ApplyClientError
from apply_client.shown_text import shown_line


class WorkspaceError(ApplyClientError):
    """Base of the refusals of a workspace; `name` is the file as the caller named it."""

    code = "workspace-error"

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{shown_line(name) or repr(name)} {problem}")
        self.name = name


class PathRefusedError(WorkspaceError):
    """The name leads out of the workspace, into version control, or is not a plain name."""

    code = "path-refused"


class FileMissingError(WorkspaceError):
    """The file does not exist."""

    code = "file-missing"


class FilePresentError(WorkspaceError):
    """A file that was to be added exists already."""

    code = "file-present"


class NotAFileError(WorkspaceError):
    """The name is that of a folder, a device, a pipe or a socket."""

    code = "not-a-file"


class FileTooLargeError(WorkspaceError):
    """The file has more bytes than the workspace reads or writes."""

    code = "file-too-large"


class ContentConflictError(WorkspaceError):
    """The file is not the one that the edit was made for."""

    code = "content-conflict"


class FileAccessError(WorkspaceError):
    """The disk or the permissions do not allow it; the file is as it was."""

    code = "file-access"
