"""Reads a conversation's messages as plain text with the roles of chat templates."""

from __future__ import annotations

from typing import Literal

from apply_service.http.compat.schemas import ChatBody, ContentPart
from apply_service.http.problems import ProblemError, make_problem
from apply_service.prompts.chat_template import ChatMessage

Role = Literal["system", "user", "assistant"]
_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}


def messages_of(body: ChatBody) -> list[ChatMessage]:
    """All messages. Raises ProblemError (400) for content other than text."""
    messages = []
    for place, message in enumerate(body.messages):
        field = f"messages[{place}]"
        role = _ROLES.get(message.role)
        if role is None:
            raise _unreadable(f"{field}.role", f"the role is {message.role!r}", ", ".join(_ROLES))
        messages.append(ChatMessage(role, text_of(message.content, f"{field}.content")))
    return messages


def text_of(content: str | list[ContentPart] | None, field: str) -> str:
    """The text of a message or a prediction, its parts joined. Raises ProblemError (400)."""
    if content is None or isinstance(content, str):
        return content or ""
    for place, part in enumerate(content):
        if part.type != "text" or part.text is None:
            raise _unreadable(f"{field}[{place}]", f"the type is {part.type!r}", "text")
    return "".join(part.text or "" for part in content)


def prediction_of(body: ChatBody) -> str | None:
    """The caller's guess of the answer. Raises ProblemError (400)."""
    if body.prediction is None:
        return None
    return text_of(body.prediction.content, "prediction.content")


def _unreadable(field: str, detail: str, choices: str) -> ProblemError:
    return ProblemError(
        make_problem(
            400,
            code="invalid-field",
            title="The body has a wrong field",
            detail=f"{field}: {detail}; this server cannot read it",
            field=field,
            remedy=f"choose one of: {choices}",
        )
    )
