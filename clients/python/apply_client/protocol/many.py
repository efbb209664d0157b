"""The outcome of each of many independent edits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic

from apply_client.edit import Edit
from apply_client.errors import ApplyClientError
from apply_client.protocol.wire import ApplyResult, Content

DEFAULT_CONCURRENCY = 8


@dataclass(frozen=True, slots=True)
class EditOutcome(Generic[Content]):
    """The outcome of one edit: a result or an error; `position` counts the edits from 0."""

    position: int
    edit: Edit[Content]
    result: ApplyResult[Content] | None = field(default=None, kw_only=True)
    error: ApplyClientError | None = field(default=None, kw_only=True)


def check_concurrency(max_concurrency: int) -> None:
    """Raise ValueError for a number of simultaneous edits that makes no sense."""
    if not 1 <= max_concurrency <= 256:
        raise ValueError(f"max_concurrency is {max_concurrency}; it must be from 1 to 256")
