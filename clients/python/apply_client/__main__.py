"""The command line: `apply-client COMMAND`, or `python -m apply_client COMMAND`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from apply_client.errors import ApplyClientError
from apply_client.mcp_command import add_mcp_command

EXIT_ERROR, EXIT_INTERRUPTED = 1, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    parser = argparse.ArgumentParser(prog="apply-client", description="Client of apply-service.")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add_mcp_command(subparsers)
    args = parser.parse_args(argv)
    try:
        exit_code: int = args.run(args)
    except ApplyClientError as error:
        print(f"apply-client {args.command}: {error}", file=sys.stderr)
        return EXIT_ERROR
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
