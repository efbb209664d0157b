"""A real MCP client, from the official package, and a process of `apply-client mcp`."""

from __future__ import annotations

import asyncio
import concurrent.futures
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client.session import ElicitationFnT
from mcp.client.stdio import stdio_client
from mcp.types import CallToolResult, TextContent

ROOT = Path(__file__).parents[3]
ANSWER_LIMIT_S = 20.0

Work = Callable[[Client], Awaitable[Any]]


class McpSession:
    """Calls of one client, which lives in a task of a thread; made by `mcp_session`."""

    def __init__(
        self,
        answer_limit_s: float = ANSWER_LIMIT_S,
        *,
        asked: ElicitationFnT | None = None,
        mode: str = "auto",
    ) -> None:
        self.answer_limit_s = answer_limit_s
        self.asked = asked
        self.mode = mode
        self.loop = asyncio.new_event_loop()
        self.queue: asyncio.Queue[tuple[Work, concurrent.futures.Future[Any]] | None]
        self.queue = asyncio.Queue()

    def run(self, work: Work) -> Any:
        """Run a function of the client and return its result."""
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self.loop.call_soon_threadsafe(self.queue.put_nowait, (work, future))
        return future.result(timeout=self.answer_limit_s)

    def call(self, tool: str, **arguments: Any) -> CallToolResult:
        """The answer to a tool call."""
        result = self.run(lambda client: client.call_tool(tool, arguments))
        assert isinstance(result, CallToolResult)
        return result

    async def serve(self, parameters: StdioServerParameters, errors: Path) -> None:
        """Run the requested calls until None comes."""
        with errors.open("w") as stream:
            transport = stdio_client(parameters, errlog=stream)
            async with Client(
                transport,
                read_timeout_seconds=self.answer_limit_s,
                elicitation_callback=self.asked,
                mode=self.mode,
            ) as client:
                while (item := await self.queue.get()) is not None:
                    work, future = item
                    try:
                        future.set_result(await work(client))
                    except Exception as error:
                        future.set_exception(error)


def mcp_session(
    root: Path,
    *flags: str,
    url: str,
    errors: Path,
    asked: ElicitationFnT | None = None,
    mode: str = "auto",
) -> AbstractContextManager[McpSession]:
    """A client of a server for the files below `root`; the server's stderr goes into `errors`.

    With `asked` the client can ask a person; `mode` "legacy" speaks the protocol before 2026.
    """
    command = [sys.executable, "-m", "apply_client", "mcp", "--root", str(root), "--url", url]
    environment = {"PYTHONPATH": str(ROOT / "clients" / "python")}
    return mcp_process(
        [*command, *flags], environment=environment, errors=errors, asked=asked, mode=mode
    )


@contextmanager
def mcp_process(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    errors: Path,
    answer_limit_s: float = ANSWER_LIMIT_S,
    asked: ElicitationFnT | None = None,
    mode: str = "auto",
) -> Iterator[McpSession]:
    """A client of the server that a command starts, with few of our environment variables."""
    parameters = StdioServerParameters(
        command=command[0], args=list(command[1:]), env=dict(environment)
    )
    session = McpSession(answer_limit_s, asked=asked, mode=mode)
    thread = threading.Thread(
        target=session.loop.run_until_complete, args=(session.serve(parameters, errors),)
    )
    thread.start()
    try:
        yield session
    finally:
        session.loop.call_soon_threadsafe(session.queue.put_nowait, None)
        thread.join(timeout=ANSWER_LIMIT_S)
        assert not thread.is_alive()
        session.loop.close()


def text_of(result: CallToolResult) -> str:
    """The one text of an answer."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text
