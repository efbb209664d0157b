"""Stdio for the MCP server that answers unreadable requests too.

The library drops such a line: invalid JSON-RPC, or half of a surrogate pair in a text, as a
language model may write it. The sender would wait for ever.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import mcp.types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

Item = SessionMessage | Exception


@asynccontextmanager
async def answering_stdio() -> AsyncIterator[tuple[MemoryObjectReceiveStream[Item], Any]]:
    """Streams of messages to read and to write, in the form of the library's `stdio_server`."""
    async with stdio_server() as (reader, writer), anyio.create_task_group() as tasks:
        sender, receiver = anyio.create_memory_object_stream[Item](0)
        tasks.start_soon(_relay, reader, writer, sender)
        async with receiver:
            yield receiver, writer
            tasks.cancel_scope.cancel()


async def _relay(reader: Any, writer: Any, sender: MemoryObjectSendStream[Item]) -> None:
    """Pass messages on until one side has gone; refuse unreadable ones here."""
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async with sender:
            async for item in reader:
                request_id = _id_of(item) if isinstance(item, ValidationError) else None
                if request_id is None:
                    await sender.send(item)
                else:
                    await writer.send(SessionMessage(_refusal(request_id, item)))


def _id_of(error: ValidationError) -> str | int | None:
    """The id of a message that the library could not read, if it has one."""
    message = error.errors()[0]["input"]
    if isinstance(message, str):
        try:
            message = json.loads(message)
        except (ValueError, RecursionError):  # no JSON, or nested without end
            return None
    request_id = message.get("id") if isinstance(message, dict) else None
    return request_id if isinstance(request_id, str | int) else None


def _refusal(request_id: str | int, error: ValidationError) -> types.JSONRPCError:
    reason = error.errors()[0]["msg"]
    return types.JSONRPCError(
        jsonrpc="2.0",
        id=request_id,
        error=types.ErrorData(
            code=types.PARSE_ERROR,
            message=f"the request cannot be read ({reason}); send it again as valid JSON, with"
            " whole characters only",
        ),
    )
