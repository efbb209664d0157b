"""The result of one check."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

CheckStatus = Literal["ok", "warning", "error", "skipped"]


class Check(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of one check. `remedy` says what to do; `facts` are for programs."""

    name: str
    status: CheckStatus
    text: str
    remedy: str | None = None
    facts: dict[str, Any] = {}


def passed(name: str, text: str, **facts: Any) -> Check:
    """A check without a problem."""
    return Check(name=name, status="ok", text=text, facts=facts)


def warned(name: str, text: str, *, remedy: str, **facts: Any) -> Check:
    """A check of a thing that works, but could be better or safer."""
    return Check(name=name, status="warning", text=text, remedy=remedy, facts=facts)


def failed(name: str, text: str, *, remedy: str | None = None, **facts: Any) -> Check:
    """A check of a thing that does not work; without a remedy the text says what to do."""
    return Check(name=name, status="error", text=text, remedy=remedy, facts=facts)


def skipped(name: str, text: str) -> Check:
    """A check that was not made, with the reason."""
    return Check(name=name, status="skipped", text=text)
