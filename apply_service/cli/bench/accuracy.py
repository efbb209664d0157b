"""`apply-service bench accuracy`: its flags."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from apply_service.cli.bench.session_flags import options_of
from apply_service.cli.suggesting_parser import positive_int
from apply_service.evaluate import accuracy
from apply_service.evaluate.accuracy import (
    DEFAULT_FAILURES,
    DEFAULT_GIT_LIMIT,
    DEFAULT_TIMEOUT_S,
    AccuracyOptions,
)
from apply_service.evaluate.contenders.remote import API_KEY_VARIABLE
from apply_service.evaluate.contenders.wire_formats import FORMATS


def add_accuracy_command(subparsers: Any) -> None:
    """Register `accuracy` below `apply-service bench`."""
    parser = subparsers.add_parser(
        "accuracy",
        help="how often the merged file is right, and how often it says so",
        description=accuracy.__doc__,
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--cases", type=Path, metavar="FILE", help="case file, one JSON a line")
    source.add_argument(
        "--git",
        type=Path,
        metavar="REPO",
        help="your own repository: its last commits that changed one file, as lazy updates",
    )
    parser.add_argument("--revision", default="HEAD", help="with --git: where to begin")
    parser.add_argument(
        "--limit",
        type=positive_int,
        help=f"at most this many cases, with --git {DEFAULT_GIT_LIMIT} by default",
    )
    _add_contender_flags(parser)
    parser.add_argument(
        "--failures",
        type=Path,
        default=DEFAULT_FAILURES,
        metavar="DIR",
        help=f"folder for the misses as diffs, default {DEFAULT_FAILURES}",
    )
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")


def _add_contender_flags(parser: argparse.ArgumentParser) -> None:
    contender = parser.add_mutually_exclusive_group()
    contender.add_argument(
        "--merge-only", action="store_true", help="the deterministic merge alone, without a model"
    )
    contender.add_argument(
        "--no-fallback",
        action="store_true",
        help="the model's output on each case, without the merge",
    )
    parser.add_argument(
        "--constraint",
        choices=("merge", "none"),
        help="whether the model, asked about each case, is bound to the valid merges; unset, what"
        " suits it",
    )
    contender.add_argument(
        "--against",
        metavar="URL",
        help=f"an endpoint that gets the files and updates; its key comes from {API_KEY_VARIABLE}",
    )
    parser.add_argument(
        "--api", choices=tuple(FORMATS), help="with --against: by default told by the address"
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=DEFAULT_TIMEOUT_S,
        metavar="SECONDS",
        help=f"with --against: the longest wait for one answer, default {DEFAULT_TIMEOUT_S:.0f}",
    )
    parser.add_argument("--model", help="model here, or the name that the endpoint is asked for")
    parser.add_argument("--threads", help="threads of torch")


def run_accuracy(args: argparse.Namespace) -> int:
    """Run it with these flags; the exit code."""
    return accuracy.run_accuracy(options_of(AccuracyOptions, args))
