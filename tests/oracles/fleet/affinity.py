"""Edits of some files through a balancer to two replicas, with and without the affinity header.

    python tests/oracle.py fleet.affinity --kind nginx --edits 500 --files 40

The model is tiny and random, and each replica has room for three quarters of the files. The last
line is the third run, with the header, in which one replica gets kill -9.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from pathlib import Path

from balancer import balancer
from fleet_traffic import Tally, home_of_files, replicas, send_edits
from tiny_model import write_tiny_model


async def run(kind: str, *, num_edits: int, num_files: int) -> bool:
    """Print the tallies; True if no request failed and only files of the dead replica moved."""
    with tempfile.TemporaryDirectory(prefix="affinity-") as folder:
        write_tiny_model(Path(folder), seed=0)
        tallies = {}
        for names_file in (False, True):
            with (
                replicas(Path(folder), 2, num_files=num_files) as pair,
                balancer(kind, [url for _, url in pair]) as front,
            ):
                tally = await send_edits(
                    front, count=num_edits, num_files=num_files, names_file=names_file
                )
                tallies["affinity" if names_file else "none"] = tally
                show(kind, "affinity" if names_file else "none", tally)
                if not names_file:
                    continue
                (doomed, _), (_, other_url) = pair
                before = await home_of_files(front, other_url, num_files=num_files)
                load = asyncio.create_task(
                    send_edits(front, count=num_edits, num_files=num_files, seed=1)
                )
                await asyncio.sleep(1.0)
                doomed.kill()
                killed = await load
                after = await home_of_files(front, other_url, num_files=num_files)
                num_moved = sum(one != two for one, two in zip(before, after, strict=True))
                show(kind, f"killed, {num_moved} of {num_files} files moved", killed)
    whole = {"200": num_edits}
    return (
        all(tally.endings == whole for tally in (*tallies.values(), killed))
        and tallies["affinity"].cached_share > tallies["none"].cached_share
        and num_moved <= (1 / 2 + 0.1) * num_files
    )


def show(kind: str, what: str, tally: Tally) -> None:
    """One line of JSON."""
    figures = {"cached": round(tally.cached_share, 4), "endings": dict(tally.endings)}
    print(json.dumps({"balancer": kind, "run": what, **figures}), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=("nginx", "haproxy"), default="nginx")
    parser.add_argument("--edits", type=int, default=500)
    parser.add_argument("--files", type=int, default=40)
    args = parser.parse_args()
    is_well = asyncio.run(run(args.kind, num_edits=args.edits, num_files=args.files))
    return 0 if is_well else 1


if __name__ == "__main__":
    raise SystemExit(main())
