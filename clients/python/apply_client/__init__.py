"""Client of apply-service: lazy edits in, merged files with a verdict out.

`ApplyClient` (client.py) and `AsyncApplyClient` (async_client.py) drive one core without I/O:

- edit.py        what a caller asks for
- requests.py    the HTTP requests of it, as values
- exchange.py    when a request is tried again, and when no longer
- answers.py     answers as results and errors; wire.py their shapes, errors.py the tree
- sse.py         server-sent events and events.py what they mean; ndjson.py lines of JSON
- transport.py   what both clients tell httpx

Edits of files:

- workspace.py       the files below one folder, and nothing else; path_name.py, place.py,
                     careful_files/ is how that is kept
- write_policy.py    which results are written; patch_split.py patches of several files
- workspace_edit.py  edits of a workspace, patch_run.py those of one patch, file_run.py those of
                     one file, edit_report.py what became of each
- mcp_server.py      the MCP server; mcp_tools.py its tools, edit_answer.py what it answers,
                     mcp_transport.py its stdio
- __main__.py        the command line
"""

from apply_client.address import Address, AddressError
from apply_client.async_client import AsyncApplyClient
from apply_client.client import ApplyClient
from apply_client.edit import ApplyOptions, Edit, Sampling
from apply_client.errors import (
    APIConnectionError,
    APIStatusError,
    APITimeoutError,
    ApplyClientError,
    AuthenticationError,
    BadRequestError,
    EditRejectedError,
    InvalidResponseError,
    NotFoundError,
    RateLimitError,
    ServerError,
    TooLargeError,
    UnprocessableEditError,
)
from apply_client.events import (
    RegionDone,
    RegionRestart,
    RegionStarted,
    StreamEvent,
    Token,
)
from apply_client.exchange import RetryPolicy
from apply_client.many import EditOutcome
from apply_client.status import ServiceStatus
from apply_client.wire import ApplyResult, Finding, ModelCard, Problem
from apply_client.workspace_errors import ContentConflictError, WorkspaceError
from apply_client.write_policy import WritePolicy

__all__ = [
    "APIConnectionError",
    "APIStatusError",
    "APITimeoutError",
    "Address",
    "AddressError",
    "ApplyClient",
    "ApplyClientError",
    "ApplyOptions",
    "ApplyResult",
    "AsyncApplyClient",
    "AuthenticationError",
    "BadRequestError",
    "ContentConflictError",
    "Edit",
    "EditOutcome",
    "EditRejectedError",
    "Finding",
    "InvalidResponseError",
    "ModelCard",
    "NotFoundError",
    "Problem",
    "RateLimitError",
    "RegionDone",
    "RegionRestart",
    "RegionStarted",
    "RetryPolicy",
    "Sampling",
    "ServerError",
    "ServiceStatus",
    "StreamEvent",
    "Token",
    "TooLargeError",
    "UnprocessableEditError",
    "WorkspaceError",
    "WritePolicy",
]
