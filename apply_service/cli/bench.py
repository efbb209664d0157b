"""`apply-service bench accuracy|latency|tune|judge|writer`: their flags as options of `evaluate`.

What imports torch is imported by the commands that need it: `accuracy` can do without.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

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

if TYPE_CHECKING:
    from apply_service.evaluate.edit_session import SessionOptions


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


def run_accuracy_command(args: argparse.Namespace) -> int:
    """Run it with these flags; the exit code."""
    return accuracy.run_accuracy(options_of(AccuracyOptions, args))


def add_latency_command(subparsers: Any) -> None:
    """Register `latency` below `apply-service bench`."""
    from apply_service.evaluate import latency

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


def run_latency_command(args: argparse.Namespace) -> int:
    """Run it with these flags; the exit code."""
    from apply_service.evaluate.latency import LatencyOptions, run_latency

    return run_latency(options_of(LatencyOptions, args, session=session_of(args)))


def add_tune_command(subparsers: Any) -> None:
    """Register `tune` below `apply-service bench`."""
    from apply_service.evaluate import tune

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


def run_tune_command(args: argparse.Namespace) -> int:
    """Run it with these flags; the exit code."""
    from apply_service.evaluate.tune import TuneOptions, run_tune

    return run_tune(options_of(TuneOptions, args, session=session_of(args)))


def add_judge_command(subparsers: Any) -> None:
    """Register `judge` below `apply-service bench`."""
    _add_witness_command(subparsers, "judge", longest_wait="for a letter")


def add_writer_command(subparsers: Any) -> None:
    """Register `writer` below `apply-service bench`."""
    _add_witness_command(subparsers, "writer", longest_wait="for an edit")


def _add_witness_command(subparsers: Any, role: str, *, longest_wait: str) -> None:
    from apply_service.evaluate import judging

    parser = subparsers.add_parser(
        role,
        help=f"how often a {role} is right about doubts, and what it is worth",
        description=judging.__doc__,
    )
    parser.set_defaults(role=role)
    parser.add_argument(
        "--cases", type=Path, required=True, metavar="FILE", help="case file, one JSON a line"
    )
    parser.add_argument("--limit", type=positive_int, help="at most this many cases")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    group = parser.add_argument_group("settings", "as for `apply-service serve`")
    group.add_argument("--config", type=Path, metavar="FILE", help="TOML file with settings")
    group.add_argument(f"--{role}-url", dest="url", metavar="URL", help=f"the {role}'s server")
    group.add_argument(
        f"--{role}-model", dest="model", metavar="NAME", help="by default the server's first"
    )
    group.add_argument(
        f"--{role}-timeout-s",
        dest="timeout_s",
        metavar="SECONDS",
        help=f"the longest wait {longest_wait}",
    )


def run_judge_command(args: argparse.Namespace) -> int:
    """Run `judge` or `writer` with these flags; the exit code."""
    from apply_service.evaluate.judging import WitnessOptions, run_witness

    return run_witness(options_of(WitnessOptions, args))


run_writer_command = run_judge_command


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


Options = TypeVar("Options")


def add_session_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `SessionOptions`."""
    group = parser.add_argument_group("settings", "as for `apply-service serve`")
    group.add_argument("--config", type=Path, metavar="FILE", help="TOML file with settings")
    group.add_argument("--model", default=None, help="model name or folder")
    group.add_argument("--profile", default=None, help="prompt profile, by default the model's")
    group.add_argument("--dtype", default=None, help="number format of the weights")
    group.add_argument("--threads", default=None, help="CPU threads of the model")


def session_of(args: argparse.Namespace) -> SessionOptions:
    """The session that the flags of `add_session_flags` ask for."""
    from apply_service.evaluate.edit_session import SessionOptions

    return options_of(SessionOptions, args)


def options_of(kind: type[Options], args: argparse.Namespace, **others: Any) -> Options:
    """A dataclass whose fields are named as the flags are, except `others`."""
    values: Mapping[str, Any] = vars(args) | others
    return kind(**{field.name: values[field.name] for field in fields(kind)})  # type: ignore[arg-type]
