"""`python -m benchmarks fleet PART`: figures of several replicas.

`overhead` times edits without a model at one replica behind Ray Serve and at the service alone, in
turns; it needs the extra `ray`. `simulate` prints hits and loads of a thousand simulated replicas,
calm and after a tenth of them died. `plan` compares what `apply-service plan` says of this machine
with edits of the embedded model that run here.
"""

from __future__ import annotations

import argparse
from typing import Any

from batching.machine_file import processor_name


def add_fleet_command(subparsers: Any) -> None:
    """Register `fleet` below `python -m benchmarks`."""
    parser = subparsers.add_parser(
        "fleet", help="what several replicas cost and hold", description=__doc__
    )
    parts = parser.add_subparsers(dest="part", required=True, metavar="PART")
    overhead = parts.add_parser("overhead", help="what Ray Serve adds to an edit")
    overhead.add_argument("--edits", type=int, default=150, help="edits to time at each (150)")
    simulation = parts.add_parser("simulate", help="a thousand simulated replicas")
    simulation.add_argument("--zipf", type=float, default=1.0, help="exponent of popularity (1)")
    simulation.add_argument("--dead", type=float, default=0.1, help="share that dies (0.1)")
    plan = parts.add_parser("plan", help="a plan beside edits that run here")
    plan.add_argument("--edits", type=int, default=24, help="edits of each run (24)")
    plan.add_argument("--at-once", default="1,4", help="edits at once (1,4)")


def run_fleet(args: argparse.Namespace) -> int:
    """Run one part; the exit code."""
    print(processor_name())
    if args.part == "simulate":
        from benchmarks.fleet.simulation import Fleet, table

        print(table(Fleet(zipf=args.zipf), args.dead))
    elif args.part == "plan":
        from benchmarks.fleet.plan_error import compare

        print(compare(args.edits, [int(count) for count in args.at_once.split(",")]))
    else:
        from benchmarks.fleet.overhead import measure_overhead

        print(measure_overhead(args.edits))
    return 0
