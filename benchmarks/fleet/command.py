"""`python -m benchmarks fleet PART`: figures of several replicas.

`overhead` times edits without a model at one replica behind Ray Serve and at the service alone, in
turns; it needs the extra `ray`.
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
    overhead.add_argument("--edits", type=int, default=300, help="edits to time at each (300)")


def run_fleet(args: argparse.Namespace) -> int:
    """Run one part; the exit code."""
    from benchmarks.fleet.overhead import measure_overhead

    print(processor_name())
    print(measure_overhead(args.edits))
    return 0
