"""Reads messages as plain text with the roles of chat templates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from apply_service.http.compat.schemas import ContentPart
from apply_service.http.problems import ProblemError, make_problem
from apply_service.prompts.chat_template import ChatMessage
from apply_service.shown_text import shortened

Role = Literal["system", "user", "assistant"]
_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}

Content = str | Sequence[ContentPart] | None


def message_of(
    role: str | None, content: Content, field: str, *, part_types: Sequence[str] = ("text",)
) -> ChatMessage:
    """One message, which stands at `field`. Raises ProblemError (400) for what is no text."""
    known = _ROLES.get(role or "")
    if known is None:
        raise unreadable(f"{field}.role", f"the role is {shortened(str(role))!r}", _ROLES)
    return ChatMessage(known, text_of(content, f"{field}.content", part_types=part_types))


def text_of(content: Content, field: str, *, part_types: Sequence[str] = ("text",)) -> str:
    """The text of a message or a prediction, its parts joined. Raises ProblemError (400)."""
    if content is None or isinstance(content, str):
        return content or ""
    for place, part in enumerate(content):
        if part.type not in part_types or part.text is None:
            what = f"the type is {shortened(part.type)!r}"
            raise unreadable(f"{field}[{place}]", what, part_types)
    return "".join(part.text or "" for part in content)


def unreadable(field: str, detail: str, choices: Sequence[str] | dict[str, Role]) -> ProblemError:
    """The problem (400) of a part that is none of the choices."""
    return ProblemError(
        make_problem(
            400,
            code="invalid-field",
            title="The body has a wrong field",
            detail=f"{field}: {detail}; this server cannot read it",
            field=field,
            remedy=f"choose one of: {', '.join(choices)}",
        )
    )
