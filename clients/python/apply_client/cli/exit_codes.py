"""The exit codes of `apply-client`; `apply-service` uses the same."""

from __future__ import annotations

from typing import Final

EXIT_OK: Final = 0  # applied, or unchanged
EXIT_ERROR: Final = 1  # the service, the network or the disk did not allow it
EXIT_USAGE: Final = 2  # the command line or an input file is wrong
EXIT_REVIEW: Final = 3  # a result needs review; it is written only on request
EXIT_REJECTED: Final = 4  # a result failed its checks, or the update does not fit the file
EXIT_INTERRUPTED: Final = 130  # Ctrl-C

_EXIT_BY_STATUS = {
    "applied": EXIT_OK,
    "unchanged": EXIT_OK,
    "needs_review": EXIT_REVIEW,
    "rejected": EXIT_REJECTED,
}

DESCRIPTION = (
    "Exit codes: 0 applied or unchanged, 1 error, 2 usage, 3 needs review, 4 rejected or the"
    " update does not fit, 130 Ctrl-C."
)


def exit_code_of(status: str) -> int:
    """The exit code of a verdict."""
    return _EXIT_BY_STATUS.get(status, EXIT_REJECTED)
