"""Client of apply-service: sends lazy edits, gets merged files with a verdict.

- client.py, async_client.py  `ApplyClient` and `AsyncApplyClient`; address.py where the service is
- edit.py, update_text.py     an edit, and its update from a file; errors.py the tree of errors
- protocol/                   HTTP without I/O, which both clients drive
- workspace/, careful_files/  edits of the files below one folder, written in one step each
- batch/                      many edits in one run
- mcp_server/                 the MCP server
- cli/, __main__.py           the command line
- regular_file.py, shown_text.py  files that users name; texts that are safe to show
"""

from apply_client.address import Address, AddressError
from apply_client.async_client import AsyncApplyClient
from apply_client.client import ApplyClient
from apply_client.edit import ApplyOptions, Edit, FileEdit, FilesEdit, Sampling
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
    UnknownChoiceError,
    UnprocessableEditError,
)
from apply_client.protocol.events import (
    RegionDone,
    RegionRestart,
    RegionStarted,
    StreamEvent,
    Token,
)
from apply_client.protocol.exchange import RetryPolicy
from apply_client.protocol.many import EditOutcome
from apply_client.protocol.status import ServiceStatus
from apply_client.protocol.wire import (
    ApplyResult,
    Choice,
    ChoiceWhere,
    FileResult,
    FilesResult,
    Finding,
    JudgeWord,
    ModelCard,
    Problem,
)
from apply_client.workspace.errors import ContentConflictError, WorkspaceError
from apply_client.workspace.write_policy import WritePolicy

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
    "Choice",
    "ChoiceWhere",
    "ContentConflictError",
    "Edit",
    "EditOutcome",
    "EditRejectedError",
    "FileEdit",
    "FileResult",
    "FilesEdit",
    "FilesResult",
    "Finding",
    "InvalidResponseError",
    "JudgeWord",
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
    "UnknownChoiceError",
    "UnprocessableEditError",
    "WorkspaceError",
    "WritePolicy",
]
