"""`python -m benchmarks growth`: how the cost of an edit grows, along one axis at a time.

`file`: an edit of one function in files of 1,000 to 100,000 lines. `edit`: an edit of one function
with 2 to 128 new lines. `concurrency`: 1 to 64 such edits at once. `k`: drafts of 0 to 256 tokens
where the model writes freely, with a budget (`auto`) and always as long as they may be (`fixed`).

Files are generated, all functions differ, and no prompt comes twice. The limit `max_file_bytes` is
lifted to what the largest file needs. Finished points are kept in `--out`, and another run with
the same file goes on behind them.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import msgspec

from apply_service.apply.errors import ApplyError
from apply_service.cli.bench import add_session_flags, session_of
from apply_service.config import Settings
from apply_service.evaluate.edit_session import EditSession, session_settings
from apply_service.evaluate.run_log import RunLog
from apply_service.observe.progress import tracked
from benchmarks.growth.axes import AXES, GrowthPoint, measure_point
from benchmarks.growth.plot import check_plot_folder, plot_rows

_MAX_FILE_BYTES = 16 << 20
_MAX_DRAFT_TOKENS = 256


class GrowthBenchError(ApplyError):
    """The bench cannot run as asked."""


def add_growth_command(subparsers: Any) -> None:
    """Register `growth` below `python -m benchmarks`."""
    parser = subparsers.add_parser(
        "growth",
        help="how cost grows with files, edits, requests at once and drafts",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--axis",
        type=_axis_names,
        default=tuple(AXES),
        metavar="AXES",
        help=f"with commas between: {','.join(AXES)}",
    )
    parser.add_argument("--values", type=_numbers, default=None, help="of the axis, with commas")
    parser.add_argument("--rounds", type=int, default=3, help="edits a point; the median counts")
    parser.add_argument("--plot", type=Path, metavar="DIR", help="write a PNG for each axis")
    parser.add_argument("--out", type=Path, metavar="FILE", help="keep finished points")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    add_session_flags(parser)


def run_growth(args: argparse.Namespace) -> int:
    """Run the bench and print its figures."""
    _check(args)
    settings = session_settings(session_of(args)).settings
    report = _measure(settings, args)
    if args.json:
        print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    else:
        print(_format_report(report))
    if args.plot is not None:
        for path in plot_rows(report["rows"], args.plot):
            print(f"wrote {path}", file=sys.stderr)
    return 0


def _check(args: argparse.Namespace) -> None:
    if args.rounds < 1:
        raise GrowthBenchError(f"--rounds is {args.rounds}; give a number from 1 on")
    if args.plot is not None:
        check_plot_folder(args.plot)
    if args.values is None:
        return
    if len(args.axis) != 1:
        raise GrowthBenchError(
            f"--values is of one axis, and --axis names {len(args.axis)}; name one"
        )
    axis = AXES[args.axis[0]]
    for value in args.values:
        if not axis.least <= value <= axis.most or value % axis.step:
            raise GrowthBenchError(
                f"--values has {value}, the axis {axis.name} goes from {axis.least} to"
                f" {axis.most} in steps of {axis.step}; give numbers of these"
            )


def _measure(settings: Settings, args: argparse.Namespace) -> dict[str, Any]:
    """All points of the axes that were named, one session for each draft budget."""
    facts: dict[str, Any] = {}
    rows: list[GrowthPoint] = []
    wanted = [(name, mode) for name in args.axis for mode in AXES[name].draft_budgets]
    for mode in dict.fromkeys(mode for _, mode in wanted):
        settings_of_mode = msgspec.structs.replace(
            settings,
            max_file_bytes=max(settings.max_file_bytes, _MAX_FILE_BYTES),
            draft_budget=mode or settings.draft_budget,
            max_draft_tokens=_MAX_DRAFT_TOKENS if mode else settings.max_draft_tokens,
        )
        with EditSession.load(settings_of_mode) as session:
            facts = {"bench": "growth", **session.describe(), "rounds": args.rounds}
            facts["settings"].pop("draft_budget")
            facts["settings"].pop("max_draft_tokens")
            log = RunLog(args.out, identity=facts, row_type=GrowthPoint)
            names = [name for name, of_mode in wanted if of_mode == mode]
            rows += _measure_axes(session, names, log, args)
    return {**facts, "notes": _notes(settings), "rows": rows}


def _measure_axes(
    session: EditSession, names: list[str], log: RunLog[GrowthPoint], args: argparse.Namespace
) -> list[GrowthPoint]:
    known = {(point.axis, point.value, point.draft_budget): point for point in log.rows}
    points = []
    mode = session.settings.draft_budget
    wanted = [(name, value, mode) for name in names for value in args.values or AXES[name].values]
    for key in tracked(wanted, name=lambda key: f"{key[0]} {key[1]}, draft budget {mode}"):
        if key not in known:
            known[key] = measure_point(session, key[0], key[1], num_rounds=args.rounds)
            log.add(known[key])
        points.append(known[key])
    return points


def _notes(settings: Settings) -> list[str]:
    return [
        f"max_file_bytes is lifted from {settings.max_file_bytes} to {_MAX_FILE_BYTES} bytes",
        f"on the axis k max_draft_tokens is {_MAX_DRAFT_TOKENS}, the constraint none and the scope"
        " file; on all others constraint and scope are the default",
        "a model is asked for each edit (use_model always)",
    ]


def _format_report(report: dict[str, Any]) -> str:
    lines = [
        f"model {report['model']}, {report['dtype']}, {report['threads']} threads,"
        f" {report['processor']}, torch {report['versions']['torch']}",
        *report["notes"],
        "",
        f"{'axis':<12}{'value':>8}{'budget':>8}{'edits':>7}{'edit s':>9}{'plan s':>8}"
        f"{'model s':>9}{'verdict s':>10}{'prompt':>8}{'answer':>8}{'passes':>8}{'edits/s':>9}",
    ]
    lines += [
        f"{row.axis:<12}{row.value:>8}{row.draft_budget:>8}{row.num_edits:>7}{row.edit_s:>9.3f}"
        f"{row.plan_s:>8.3f}{row.model_s:>9.3f}{row.verdict_s:>10.3f}{row.prompt_tokens:>8.0f}"
        f"{row.answer_tokens:>8.0f}{row.target_passes:>8.0f}{row.edits_per_s:>9.2f}"
        for row in report["rows"]
    ]
    return "\n".join(lines)


def _axis_names(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    for name in names:
        if name not in AXES:
            raise argparse.ArgumentTypeError(
                f"{name!r} is no axis; choose from {','.join(AXES)}, with commas between"
            )
    return names


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(number) for number in text.split(","))
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no list of numbers; give them with commas between, such as 1,4,16"
        ) from error
