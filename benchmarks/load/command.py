"""`python -m benchmarks load`: latency and goodput of a running service at rising rates.

Requests arrive as a Poisson process, whatever became of those before them, and seconds count from
the moment at which a request should have been sent: one that waits behind others is not left out.
Each request carries the deadline, so that the service drops what would be late. At every rate the
modes take turns with the same arrivals: `default` is speculation as the service is set to (with
`draft_budget = "auto"`: budgeted), `k=N` the same with drafts of at most N tokens, `off` has none.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from apply_service.apply.errors import ApplyError
from apply_service.evaluate.cases.case_file import read_cases
from apply_service.evaluate.contenders.endpoint import Endpoint
from apply_service.evaluate.contenders.remote import API_KEY_VARIABLE
from apply_service.evaluate.machine import num_cores
from apply_service.evaluate.run_log import RunLog
from apply_service.observe.progress import tracked
from batching.machine_file import processor_name
from benchmarks.growth.sized_file import PATH, module_of, one_function_update, spread_functions
from benchmarks.load.open_loop import poisson_arrivals
from benchmarks.load.plot import check_plot_file, plot_stages
from benchmarks.load.stages import LoadStage, best_goodput, format_stages, is_rising

if TYPE_CHECKING:
    import httpx

_FIRST_RATE, _MAX_RATE = 0.5, 1024.0
# The edits that are sent without --cases.
_NUM_LINES, _NUM_EDITS = 1000, 64
_PATIENCE_S = 10.0


class LoadBenchError(ApplyError):
    """The bench cannot run as asked, or the service does not answer."""


class _Model(msgspec.Struct, frozen=True):
    """What is read of a model."""

    id: str
    profile: str
    system_fingerprint: str


class _ModelList(msgspec.Struct, frozen=True):
    """What is read of a service's models; the first is its own, the others are aliases."""

    data: list[_Model]


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """Checked options of a run. Without `rates` they double until goodput stops rising."""

    url: str
    bodies: tuple[Mapping[str, Any], ...]
    modes: Mapping[str, Mapping[str, Any]]
    rates: tuple[float, ...] | None
    seconds: float
    deadline_s: float
    seed: int
    out: Path | None
    plot: Path | None

    @classmethod
    def of(cls, args: argparse.Namespace) -> LoadOptions:
        """Check the options. Raises LoadBenchError, PlotError or CaseFileError."""
        parts = urlsplit(args.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise LoadBenchError(
                f"--url {args.url!r} is no http or https address; give one such as"
                " http://127.0.0.1:8722"
            )
        if not 1 <= args.k <= 256:
            raise LoadBenchError(f"--k is {args.k}; give a number from 1 to 256")
        for name, value in (("--seconds", args.seconds), ("--deadline-s", args.deadline_s)):
            if not 0 < value <= 3600:
                raise LoadBenchError(f"{name} is {value}; give seconds, above 0 and up to 3600")
        if args.plot is not None:
            check_plot_file(args.plot)
        return cls(
            url=args.url.rstrip("/"),
            bodies=tuple(_read_bodies(args)),
            modes={
                "default": {},
                f"k={args.k}": {"k": args.k},
                "off": {"speculation": "off"},
            },
            rates=None if args.rates == "auto" else parse_rates(args.rates),
            seconds=args.seconds,
            deadline_s=args.deadline_s,
            seed=args.seed,
            out=args.out,
            plot=args.plot,
        )


def parse_rates(text: str) -> tuple[float, ...]:
    """Ascending requests a second, with commas. Raises LoadBenchError."""
    try:
        rates = tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise LoadBenchError(
            f"--rates is {text!r}; give numbers with commas, such as 0.5,1,2, or auto"
        ) from error
    if list(rates) != sorted(set(rates)) or not all(0 < rate <= _MAX_RATE for rate in rates):
        raise LoadBenchError(
            f"--rates is {text!r}; give rising rates, above 0 and up to {_MAX_RATE:g} a second"
        )
    return rates


def add_load_command(subparsers: Any) -> None:
    """Register `load` below `python -m benchmarks`."""
    parser = subparsers.add_parser(
        "load", help="latency and goodput of a running service", description=__doc__
    )
    parser.add_argument("--url", required=True, help="address of a running service")
    parser.add_argument(
        "--cases", type=Path, metavar="FILE", help="edits to send in turn, instead of made-up ones"
    )
    parser.add_argument("--limit", type=int, default=200, help="number of cases to send in turn")
    parser.add_argument(
        "--rates", default="auto", help="requests a second, with commas; auto doubles them"
    )
    parser.add_argument("--seconds", type=float, default=30.0, help="arrivals of a stage")
    parser.add_argument("--deadline-s", type=float, default=10.0, help="what is late")
    parser.add_argument("--k", type=int, default=64, help="longest draft of the mode k=N")
    parser.add_argument("--constraint", choices=("merge", "none"), help="by default the model's")
    parser.add_argument("--seed", type=int, default=0, help="of the arrivals")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="finished stages, one a line; a later run goes on"
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write a picture, a .png")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")


def run_load(args: argparse.Namespace) -> int:
    """Run the bench and print its figures."""
    if find_spec("httpx") is None:
        raise LoadBenchError(
            "the load bench needs httpx, which is not installed; install the extra `dev` or httpx"
        )
    options = LoadOptions.of(args)
    report = asyncio.run(_measure(options))
    if args.json:
        print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    else:
        print("\n".join(format_stages(report["stages"])))
    return 0


async def _measure(options: LoadOptions) -> dict[str, Any]:
    from benchmarks.load.open_loop import open_client

    api_key = os.environ.get(API_KEY_VARIABLE)
    settings = {
        "url": options.url,
        "service": _describe_service(options.url, api_key),
        "edits": len(options.bodies),
        "modes": options.modes,
        "seconds": options.seconds,
        "deadline_s": options.deadline_s,
        "seed": options.seed,
        "client": {"processor": processor_name(), "cores": num_cores()},
    }
    log = RunLog(options.out, identity={"bench": "load", **settings}, row_type=LoadStage)
    async with open_client(options.url, api_key=api_key, deadline_s=options.deadline_s) as client:
        for number, rate in enumerate(_rates(options, log.rows)):
            await _run_rate(client, options, log, rate=rate, turn=number)
    if options.plot is not None:
        plot_stages(log.rows, options.plot)
    return {**settings, "stages": log.rows, "best": best_goodput(log.rows)}


async def _run_rate(
    client: httpx.AsyncClient,
    options: LoadOptions,
    log: RunLog[LoadStage],
    *,
    rate: float,
    turn: int,
) -> None:
    """The stages of one rate that the log lacks; which mode begins rotates with `turn`."""
    from benchmarks.load.open_loop import send_open_loop

    modes = list(options.modes)
    arrivals = poisson_arrivals(rate, seconds=options.seconds, seed=options.seed)
    in_turn = modes[turn % len(modes) :] + modes[: turn % len(modes)]
    for mode in tracked(in_turn, name=lambda mode: f"{mode} at {rate:g} a second"):
        if any((stage.mode, stage.rate) == (mode, rate) for stage in log.rows):
            continue
        bodies = [
            {**options.bodies[place % len(options.bodies)], **options.modes[mode]}
            for place in range(len(arrivals))
        ]
        replies = await send_open_loop(client, bodies, arrivals, deadline_s=options.deadline_s)
        stage = LoadStage.of(mode, rate, replies, seconds=options.seconds)
        log.add(stage)
        print(
            f"{mode} at {rate:g} a second: {stage.sent} sent, goodput {stage.goodput:.2f} a second",
            file=sys.stderr,
            flush=True,
        )


def _rates(options: LoadOptions, stages: Sequence[LoadStage]) -> Iterator[float]:
    """The rates that were asked for, or doubled ones while `stages`, which grow, get better."""
    if options.rates is not None:
        yield from options.rates
        return
    rate = _FIRST_RATE
    while rate <= _MAX_RATE:
        yield rate
        if not is_rising([stage for stage in stages if stage.rate <= rate]):
            return
        rate *= 2


def _read_bodies(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The edits as the service takes them, one at least."""
    extra = {} if args.constraint is None else {"constraint": args.constraint}
    if args.cases is None:
        original = module_of(_NUM_LINES)
        for number in spread_functions(_NUM_LINES, _NUM_EDITS):
            yield {
                "original": original,
                "update": one_function_update(number),
                "path": PATH,
                **extra,
            }
        return
    cases = list(islice(read_cases(args.cases), args.limit))
    if not cases:
        raise LoadBenchError(
            f"--cases {args.cases} with --limit {args.limit} has no edit; give one at least"
        )
    for case in cases:
        body = {"original": case.original, "update": case.update, "path": case.path, **extra}
        if case.instruction is not None:
            body["instruction"] = case.instruction
        yield body


def _describe_service(url: str, api_key: str | None) -> dict[str, str]:
    """What the service says of its model. Raises EndpointError or LoadBenchError."""
    reply = Endpoint(url, api_key=api_key, timeout_s=_PATIENCE_S).get("/v1/models")
    try:
        model = msgspec.convert(reply.content, _ModelList).data[0]
    except (msgspec.ValidationError, IndexError) as error:
        raise LoadBenchError(
            f"{url}/v1/models answered with status {reply.status} and names no model; is an"
            f" apply-service there, and its key in {API_KEY_VARIABLE}?"
        ) from error
    return {"model": model.id, "profile": model.profile, "fingerprint": model.system_fingerprint}
