"""`apply-client mcp`: the MCP server for the files below one folder."""

from __future__ import annotations

import argparse
import asyncio
import signal
from typing import Any

from apply_client.address import KEY_VARIABLE, resolve_address
from apply_client.cli.exit_codes import EXIT_ERROR, EXIT_OK
from apply_client.cli.service_flags import add_url_flag
from apply_client.errors import ApplyClientError
from apply_client.workspace.folder import DEFAULT_MAX_FILE_BYTES, Workspace
from apply_client.workspace.write_policy import WritePolicy


class MissingPackageError(ApplyClientError):
    """The server needs a package that is not installed."""


def add_mcp_command(subparsers: Any) -> None:
    """Register `mcp`."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "mcp",
        help="offer edit_file to a coding agent, over stdio",
        description="An MCP server over stdio with the tools edit_file and edit_files. Results that"
        " are sure are written into files below DIR; nothing outside is read or written. The API"
        f" key of the service, if it wants one, is read from {KEY_VARIABLE}.",
    )
    parser.add_argument("--root", required=True, metavar="DIR", help="the folder of the project")
    add_url_flag(parser)
    parser.add_argument(
        "--accept-review", action="store_true", help="write results that need review as well"
    )
    parser.add_argument("--dry-run", action="store_true", help="never write, only show diffs")
    parser.add_argument(
        "--max-file-bytes",
        type=int,
        default=DEFAULT_MAX_FILE_BYTES,
        metavar="N",
        help=f"largest file that is edited, {DEFAULT_MAX_FILE_BYTES} by default",
    )
    parser.set_defaults(run=run_mcp)


def run_mcp(args: argparse.Namespace) -> int:
    """Serve until stdin ends and return the exit code. Raises ApplyClientError before that."""
    workspace = Workspace(args.root, max_file_bytes=args.max_file_bytes)
    policy = WritePolicy(accepts_review=args.accept_review, is_dry_run=args.dry_run)
    address = resolve_address(args.url, None)
    try:
        from apply_client.mcp_server.server import serve_stdio
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            f"the MCP server needs a package that is not installed ({error.name}); in the folder of"
            " the repository, run: pip install './clients/python[mcp]'"
        ) from error
    # The thread that reads stdin cannot be interrupted; files are written in one step anyway.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    exit_code = EXIT_OK
    try:
        asyncio.run(serve_stdio(workspace, policy, address))
    except* BrokenPipeError:
        # Whoever read the answers has gone, and nobody is left to be told.
        exit_code = EXIT_ERROR
    return exit_code
