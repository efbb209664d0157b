"""`apply-service bench latency`: its flags."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from apply_service.cli.bench.session_flags import add_session_flags, options_of, session_of
from apply_service.evaluate import latency
from apply_service.evaluate.latency import LatencyOptions


def add_latency_command(subparsers: Any) -> None:
    """Register `latency` below `apply-service bench`."""
    parser = subparsers.add_parser(
        "latency",
        help="time whole edits: without a model, cold, and with the prompt cached",
        description=latency.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--cases", type=Path, required=True, metavar="FILE")
    parser.add_argument("--limit", type=int, default=60, help="number of edits to time")
    parser.add_argument(
        "--long-limit", type=int, default=12, help="edits of long files that are timed in both"
    )
    parser.add_argument("--min-lines", type=int, default=300, help="a long file has more lines")
    parser.add_argument("--seed", type=int, default=0, help="which cases of the file are taken")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="keep finished edits as JSON lines"
    )
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    add_session_flags(parser)


def run_latency(args: argparse.Namespace) -> int:
    """Run it with these flags; the exit code."""
    return latency.run_latency(options_of(LatencyOptions, args, session=session_of(args)))
