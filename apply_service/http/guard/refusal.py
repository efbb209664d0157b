"""Answers of a middleware that refuses a request."""

from __future__ import annotations

from collections.abc import Mapping

from litestar.types import Scope, Send

from apply_service.http.errors import error_answer
from apply_service.http.problems import Problem
from apply_service.observe.request_record import current_record


async def refuse(
    scope: Scope,
    send: Send,
    problem: Problem,
    *,
    headers: Mapping[str, str] | None = None,
    closes: bool = False,
) -> None:
    """Send a problem in the shape of the path; `closes` ends the connection behind it."""
    record = current_record()
    if record is not None:
        record.note_answer(problem.code)
    answer = error_answer(scope["path"], problem)
    fields = {"content-type": answer.media_type, "content-length": str(len(answer.body))}
    fields |= answer.headers
    fields |= headers or {}
    if closes:
        fields["connection"] = "close"
    await send(
        {
            "type": "http.response.start",
            "status": answer.status,
            "headers": [(name.lower().encode(), value.encode()) for name, value in fields.items()],
        }
    )
    await send({"type": "http.response.body", "body": answer.body, "more_body": False})
