"""What looking at one thing came to."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

CheckStatus = Literal["ok", "warning", "error", "skipped"]


class Check(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that was looked at. `remedy` says what to do; `facts` are for programs."""

    name: str
    status: CheckStatus
    text: str
    remedy: str | None = None
    facts: dict[str, Any] = {}


def passed(name: str, text: str, **facts: Any) -> Check:
    """All is well."""
    return Check(name=name, status="ok", text=text, facts=facts)


def warned(name: str, text: str, *, remedy: str, **facts: Any) -> Check:
    """It works, and could be better or safer."""
    return Check(name=name, status="warning", text=text, remedy=remedy, facts=facts)


def failed(name: str, text: str, *, remedy: str | None = None, **facts: Any) -> Check:
    """It does not work; without a remedy the text says what to do."""
    return Check(name=name, status="error", text=text, remedy=remedy, facts=facts)


def skipped(name: str, text: str) -> Check:
    """It was not looked at, and why."""
    return Check(name=name, status="skipped", text=text)
