"""`apply-client status`: tells if a service answers, takes edits, and with which models."""

from __future__ import annotations

import argparse
from typing import Any

from apply_client.cli.exit_codes import EXIT_ERROR, EXIT_OK
from apply_client.cli.service_flags import add_url_flag
from apply_client.client import ApplyClient
from apply_client.protocol.exchange import RetryPolicy
from apply_client.shown_text import shown, shown_line

_TIMEOUT_S = 10.0


def add_status_command(subparsers: Any) -> None:
    """Register `status`."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "status",
        help="ask whether the service takes edits, and which models it has",
        description="Ask once. Exit codes: 0 it takes edits, 1 it does not, or does not answer.",
    )
    add_url_flag(parser)
    parser.set_defaults(run=run_status)


def run_status(args: argparse.Namespace) -> int:
    """Carry the command out and return its exit code. Raises ApplyClientError."""
    once = RetryPolicy(max_retries=0, timeout_s=_TIMEOUT_S)
    with ApplyClient(args.url, retry=once) as client:
        status = client.status()
        if not status.is_ready:
            print(shown(f"not ready: {status.reason}"))
            return EXIT_ERROR
        print("ready")
        for model in client.models():
            name, profile = shown_line(model.id), shown_line(model.profile)
            print(f"model {name}: {model.max_context_tokens} tokens, profile {profile}")
    return EXIT_OK
