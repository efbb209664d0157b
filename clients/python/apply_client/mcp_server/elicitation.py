"""Asks the person at an MCP client which choice is meant, where the client can (elicitation).

A client that speaks the protocol of 2026-07-28 gets the question as the result of the call, and
sends the call again with the answer. An older one is asked in the middle of the call.
"""

from __future__ import annotations

from typing import Any

import mcp.types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from apply_client.mcp_server.diff_excerpt import diff_excerpt
from apply_client.workspace.edit_report import EditReport

MAX_DIFF_LINES = 12
# From this version on questions are results; versions are dates.
_ASKS_BY_RESULT = "2026-07-28"
_CAPABILITY = types.ClientCapabilities(elicitation=types.ElicitationCapability())
_KEY = "choice"

Context = ServerRequestContext[dict[str, Any]]


def chosen_before(params: types.CallToolRequestParams) -> str | None:
    """The id with which a question was answered that came as the result of this call."""
    answer = (params.input_responses or {}).get(_KEY)
    return _choice_in(answer) if isinstance(answer, types.ElicitResult) else None


async def ask(
    context: Context, params: types.CallToolRequestParams, report: EditReport
) -> str | types.InputRequiredResult | None:
    """The id of the choice that is meant, or the question; None if nobody says so."""
    session = context.session
    is_answered = params.input_responses is not None
    if is_answered or not report.choices or not session.check_client_capability(_CAPABILITY):
        return None
    form = types.ElicitRequestFormParams(
        message=_question(report), requested_schema=_schema(report)
    )
    if context.protocol_version >= _ASKS_BY_RESULT:
        return types.InputRequiredResult(input_requests={_KEY: types.ElicitRequest(params=form)})
    try:
        answer = await session.elicit_form(
            form.message, form.requested_schema, related_request_id=context.request_id
        )
    except MCPError:  # the client says that it can ask, and then does not
        return None
    return _choice_in(answer)


def _choice_in(answer: types.ElicitResult) -> str | None:
    chosen = (answer.content or {}).get(_KEY) if answer.action == "accept" else None
    return chosen if isinstance(chosen, str) else None


def _question(report: EditReport) -> str:
    lines = [f"The edit of {report.name} may mean {len(report.choices)} things. Which one?"]
    for number, choice in enumerate(report.choices, start=1):
        lines.append(f"{number}. {choice.probability:.0%} {choice.reason}")
        lines += diff_excerpt(choice.diff, MAX_DIFF_LINES)
    return "\n".join(lines)


def _schema(report: EditReport) -> dict[str, Any]:
    """One field whose values are the ids, with what each of them does as its title."""
    choice = {
        "type": "string",
        "title": "Choice",
        "enum": [choice.id for choice in report.choices],
        "enumNames": [
            f"{number}. {choice.reason}" for number, choice in enumerate(report.choices, start=1)
        ],
    }
    return {"type": "object", "properties": {_KEY: choice}, "required": [_KEY]}
