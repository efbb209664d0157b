"""The command line: `apply-client apply|undo|batch|status|mcp|completion|man`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from apply_client.address import KEY_VARIABLE, AddressError
from apply_client.cli.apply import add_apply_command
from apply_client.cli.batch import add_batch_command
from apply_client.cli.exit_codes import EXIT_ERROR, EXIT_INTERRUPTED, EXIT_USAGE
from apply_client.cli.mcp import add_mcp_command
from apply_client.cli.shell_files import add_shell_commands
from apply_client.cli.standard_streams import drop_output, prepare_streams
from apply_client.cli.status import add_status_command
from apply_client.cli.suggesting_parser import ShowVersion, SuggestingParser
from apply_client.cli.undo import add_undo_command
from apply_client.errors import APIConnectionError, ApplyClientError, AuthenticationError
from apply_client.shown_text import say
from apply_client.update_text import InputError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    prepare_streams()
    try:
        args = build_parser().parse_args(argv)
        code = args.run(args)
        sys.stdout.flush()
        assert isinstance(code, int), "every command ends with its exit code"
        return code
    except (InputError, AddressError) as error:
        return _fail(error, EXIT_USAGE)
    except ApplyClientError as error:
        return _fail(error, EXIT_ERROR)
    except KeyboardInterrupt:
        say("interrupted")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        drop_output()
        return EXIT_ERROR
    except OSError as error:
        drop_output()
        return _fail(error, EXIT_ERROR)


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands; each command sets `run` to the function that carries it out."""
    parser = SuggestingParser(
        prog="apply-client",
        description="Has a running apply-service merge lazy edits into files."
        f" An API key is read from {KEY_VARIABLE}.",
    )
    parser.add_argument("--version", action=ShowVersion)
    parser.add_argument("--url", help="address of the service; may stand behind the command too")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add_apply_command(subparsers)
    add_undo_command(subparsers)
    add_batch_command(subparsers)
    add_status_command(subparsers)
    add_mcp_command(subparsers)
    add_shell_commands(subparsers, build_parser)
    return parser


def _fail(error: ApplyClientError | OSError, exit_code: int) -> int:
    request_id = getattr(error, "request_id", None)
    suffix = f" (request {request_id})" if request_id else ""
    if isinstance(error, AuthenticationError):
        suffix = f"; the key is read from {KEY_VARIABLE}{suffix}"
    elif isinstance(error, APIConnectionError):
        suffix = f"; `apply-service up` starts one here{suffix}"
    say(f"apply-client: {error}{suffix}")
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
