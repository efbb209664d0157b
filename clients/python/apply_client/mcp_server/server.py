"""The MCP server: two tools over stdio that edit files below one folder.

Stdout belongs to the protocol. Errors of a call are told to the model, in the answer.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import mcp.types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

from apply_client.address import Address
from apply_client.async_client import AsyncApplyClient
from apply_client.errors import ApplyClientError
from apply_client.mcp_server.edit_answer import answer_text
from apply_client.mcp_server.elicitation import ask, chosen_before
from apply_client.mcp_server.tools import EDIT_FILE, orders_of, tool_schemas
from apply_client.mcp_server.transport import answering_stdio
from apply_client.protocol.exchange import RetryPolicy
from apply_client.workspace.edits import WorkspaceEditor
from apply_client.workspace.folder import Workspace
from apply_client.workspace.write_policy import WritePolicy

SERVER_NAME = "apply-client"
VERSION = "0.1.0"

# A model waits for the answer: better soon and with a remedy than after minutes of trying.
RETRY = RetryPolicy(max_retries=2, timeout_s=90.0)

_ANNOTATIONS = types.ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False
)


def make_server(editor: WorkspaceEditor, *, root: str, url: str) -> Server[dict[str, Any]]:
    """Make the server over an editor; `root` and `url` only appear in its answers."""
    schemas = {schema["name"]: schema for schema in tool_schemas()}

    async def list_tools(
        _context: ServerRequestContext[dict[str, Any]],
        _params: types.PaginatedRequestParams | None,
    ) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=name,
                    description=schema["description"],
                    input_schema=schema["inputSchema"],
                    annotations=_ANNOTATIONS,
                )
                for name, schema in schemas.items()
            ]
        )

    async def call_tool(
        context: ServerRequestContext[dict[str, Any]], params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        if params.name not in schemas:
            return _result(f"there is no tool {params.name!a:.100}; call {' or '.join(schemas)}")
        try:
            orders, is_dry_run = orders_of(params.name, params.arguments or {})
        except ApplyClientError as error:
            return _result(str(error))
        may_ask = params.name == EDIT_FILE and orders[0].resolve is None
        if may_ask:
            orders = [replace(orders[0], resolve=chosen_before(params))]
        reports = await editor.carry_out(orders, is_dry_run=is_dry_run)
        if may_ask and len(reports) == 1:
            chosen = await ask(context, params, reports[0])
            if isinstance(chosen, types.InputRequiredResult):
                return chosen
            if chosen is not None:
                orders = [replace(orders[0], resolve=chosen)]
                reports = await editor.carry_out(orders, is_dry_run=is_dry_run)
        is_error = any(report.is_failure for report in reports)
        return _result(answer_text(reports, url=url), is_error=is_error)

    return Server(
        SERVER_NAME,
        version=VERSION,
        instructions=f"edit_file and edit_files change files below {root}; paths are from there.",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def serve_stdio(workspace: Workspace, policy: WritePolicy, address: Address) -> None:
    """Serve until stdin ends."""
    async with AsyncApplyClient(address.url, api_key=address.api_key, retry=RETRY) as client:
        editor = WorkspaceEditor(client, workspace, policy)
        server = make_server(editor, root=str(workspace.root), url=address.url)
        async with answering_stdio() as (reader, writer):
            await server.run(reader, writer, server.create_initialization_options())


def _result(text: str, *, is_error: bool = True) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], is_error=is_error
    )
