"""One problem that a check of a result found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One problem that a check found; `line` counts from 1 in the text that the message names."""

    code: str
    severity: Severity
    message: str
    hint: str
    line: int | None = None
