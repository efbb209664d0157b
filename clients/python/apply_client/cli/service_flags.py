"""Flags that several commands share: the service's address, and options for edits."""

from __future__ import annotations

import argparse

from apply_client.address import DEFAULT_URL, URL_VARIABLE
from apply_client.protocol.exchange import RetryPolicy
from apply_client.update_text import InputError


def add_url_flag(parser: argparse.ArgumentParser) -> None:
    """Add the flag for the service's address."""
    parser.add_argument(
        "--url",
        default=argparse.SUPPRESS,  # that before the command holds
        help=f"address of the service (default: {URL_VARIABLE}, else {DEFAULT_URL})",
    )


def add_edit_flags(parser: argparse.ArgumentParser, *, timeout_s: float) -> None:
    """Add flags for the service's address, for edits, and for the time limit of one."""
    add_url_flag(parser)
    parser.add_argument("--scope", choices=("auto", "file", "region"))
    parser.add_argument("--use-model", choices=("auto", "always", "never"))
    parser.add_argument("--model", help="a name of GET /v1/models")
    parser.add_argument(
        "--timeout",
        type=float,
        default=timeout_s,
        metavar="SECONDS",
        help="for one edit with all its retries (default: %(default)g)",
    )


def retry_policy_of(timeout_s: float, *, max_retries: int) -> RetryPolicy:
    """The retry policy of a `--timeout`. Raises InputError."""
    try:
        return RetryPolicy(max_retries=max_retries, timeout_s=timeout_s)
    except ValueError as error:
        raise InputError(f"--timeout {timeout_s:g}: {error}") from error
