"""Decides which results change a file: one rule for every command and tool that writes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WritePolicy:
    """`applied` is written, `needs_review` only on request, everything else never.

    With `is_dry_run` nothing is written at all.
    """

    accepts_review: bool = False
    is_dry_run: bool = False

    def is_written(self, status: str) -> bool:
        """True if a result with this status is written to its file."""
        return not self.is_dry_run and self.would_write(status)

    def would_write(self, status: str) -> bool:
        """True if a result with this status would be written, were this not a dry run."""
        return status == "applied" or (status == "needs_review" and self.accepts_review)

    def fate(self, status: str) -> str:
        """The fate of the file, in words that end a sentence with its name."""
        if self.is_written(status):
            return "was written"
        if status == "unchanged":
            return "is as the update wants it already"
        if self.would_write(status):
            return "was not written: this was a dry run"
        if status == "needs_review":
            return "was not written: the result needs review"
        return "was not written"
