"""The report of one edit of a workspace file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from apply_client.errors import ApplyClientError
from apply_client.protocol.wire import Choice, Finding

ReportStatus = Literal[
    "applied", "unchanged", "needs_review", "rejected", "added", "removed", "failed"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class EditReport:
    """One line for people (`name` and its `fate`), and the details.

    `losses` say what of the old file could not be kept. `sha256` is that of the file as it is now,
    None if it is not known or there is none. `error` says why an edit `failed`: it never had a
    result, or could not be written.
    """

    name: str
    status: ReportStatus
    fate: str
    is_written: bool = False
    is_dry_run: bool = False
    diff: str = ""
    findings: tuple[Finding, ...] = ()
    choices: tuple[Choice, ...] = ()
    losses: tuple[str, ...] = ()
    sha256: str | None = None
    error: ApplyClientError | None = None

    @property
    def is_failure(self) -> bool:
        """True if the caller has to do something about the edit."""
        if self.status in ("rejected", "failed"):
            return True
        return self.status == "needs_review" and not (self.is_written or self.is_dry_run)
