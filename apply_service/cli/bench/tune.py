"""`apply-service bench tune`: its flags."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from apply_service.cli.bench.session_flags import add_session_flags, options_of, session_of
from apply_service.evaluate import tune
from apply_service.evaluate.tune import TuneOptions


def add_tune_command(subparsers: Any) -> None:
    """Register `tune` below `apply-service bench`."""
    parser = subparsers.add_parser(
        "tune", help="find the settings that suit your cases and machine", description=tune.__doc__
    )
    parser.add_argument("--cases", type=Path, required=True, metavar="FILE")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="TOML to write")
    parser.add_argument("--limit", type=int, default=12, help="jobs to compare by")
    parser.add_argument("--together", type=int, default=1, help="edits at once, which are one job")
    parser.add_argument("--rounds", type=int, default=2, help="runs of each job by each side")
    parser.add_argument("--constraint", choices=("merge", "none"), default=None)
    parser.add_argument("--seed", type=int, default=0, help="which cases of the file are taken")
    parser.add_argument("--dtypes", type=_names, default=(), help="number formats to try too")
    parser.add_argument(
        "--only", type=_names, default=None, metavar="SETTINGS", help="try these settings alone"
    )
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    add_session_flags(parser)


def run_tune(args: argparse.Namespace) -> int:
    """Run it with these flags; the exit code."""
    return tune.run_tune(options_of(TuneOptions, args, session=session_of(args)))


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))
