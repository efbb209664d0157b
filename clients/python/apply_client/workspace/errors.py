"""What can be wrong with a file of a workspace; nothing was written when one of these is raised.

ApplyClientError ← WorkspaceError
WorkspaceError ← PathRefusedError, FileMissingError, FilePresentError, NotAFileError,
    FileTooLargeError, ContentConflictError, FileAccessError
"""

from __future__ import annotations

from apply_client.errors import ApplyClientError


class WorkspaceError(ApplyClientError):
    """Base of what a workspace refuses; `name` is the file as the caller named it."""

    code = "workspace-error"

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{_shown(name)} {problem}")
        self.name = name


class PathRefusedError(WorkspaceError):
    """The name leads out of the workspace, into version control, or is no plain name."""

    code = "path-refused"


class FileMissingError(WorkspaceError):
    """No such file."""

    code = "file-missing"


class FilePresentError(WorkspaceError):
    """A file that was to be added is there already."""

    code = "file-present"


class NotAFileError(WorkspaceError):
    """A folder, a device, a pipe or a socket."""

    code = "not-a-file"


class FileTooLargeError(WorkspaceError):
    """The file has more bytes than the workspace reads or writes."""

    code = "file-too-large"


class ContentConflictError(WorkspaceError):
    """The file is not what the edit was made for."""

    code = "content-conflict"


class FileAccessError(WorkspaceError):
    """The disk or the permissions do not allow it; the file is as it was."""

    code = "file-access"


def _shown(name: str) -> str:
    """A name that is safe to print, whatever is in it."""
    plain = name.encode("utf-8", "backslashreplace").decode()
    return plain if plain.isprintable() and plain else repr(plain)
