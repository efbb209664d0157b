"""`apply-service batch SOURCE --out FOLDER`: many edits without a server, here or on Ray.

SOURCE is a file of JSON lines or Parquet, a folder with `NAME.update` beside each file NAME, or
`git:A..B`, whose changes are applied to the files of commit A. Results go to FOLDER/results.jsonl;
no file is edited. The same command goes on after an end of any kind.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from apply_service.apply.errors import UsageError
from apply_service.config import Settings
from apply_service.fleet.batch.one_machine import run_here
from apply_service.fleet.batch.results import RESULTS, ResultFolder
from apply_service.fleet.batch.sources import Slice, slices_of

_OK, _REVIEW, _NOT_DONE = 0, 3, 4


def add_batch_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `batch` that are no settings."""
    parser.add_argument("source", metavar="SOURCE", help="file, folder or git:A..B")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FOLDER", help="where results are kept"
    )
    parser.add_argument(
        "--root",
        type=Path,
        default=Path(),
        metavar="FOLDER",
        help="where the files of edits without text are, or the repository; else this folder",
    )
    parser.add_argument(
        "--slice", type=int, default=64, metavar="N", help="edits done or not done together (64)"
    )
    parser.add_argument(
        "--on",
        choices=("here", "ray"),
        default="here",
        help="ray: on the cluster of RAY_ADDRESS, else on one of this machine (here)",
    )
    parser.add_argument(
        "--pool",
        default="1:4",
        metavar="MIN:MAX",
        help="actors on Ray, each with a model of its own (1:4)",
    )
    parser.add_argument(
        "--actor-cpus", type=float, default=1.0, metavar="N", help="CPUs of an actor on Ray (1)"
    )
    parser.add_argument(
        "--actor-gpus", type=float, default=0.0, metavar="N", help="GPUs of an actor on Ray (0)"
    )


def run_batch(args: argparse.Namespace, settings: Settings) -> int:
    """Do the batch and print its counts; the exit code. Raises UsageError or SourceError."""
    if args.slice < 1:
        raise UsageError(f"--slice is {args.slice}; give 1 or more")
    folder = args.out.resolve()
    results = ResultFolder(folder)
    results.prepare()
    slices = slices_of(args.source, root=args.root.resolve(), num_rows=args.slice)
    progress = _Progress()
    if args.on == "ray":
        parts = _run_on_ray(args, slices, folder, settings, progress)
    else:
        parts = run_here(slices, results, settings, report=progress)
    counts = results.finish(parts)
    progress.end()
    for status, count in sorted(counts.items()):
        print(f"{status:14} {count}")
    print(folder / RESULTS)
    return _exit_code(counts)


def _run_on_ray(
    args: argparse.Namespace,
    slices: Iterator[Slice],
    folder: Path,
    settings: Settings,
    progress: _Progress,
) -> list[str]:
    try:
        from apply_service.fleet.batch.ray_data import Pool, run_on_ray
    except ModuleNotFoundError as error:
        raise UsageError(
            f"--on ray needs Ray, and {error.name} is missing; install `apply-service[ray]`"
        ) from error
    least, colon, most = args.pool.partition(":")
    if not (least.isdecimal() and (most if colon else least).isdecimal()):
        raise UsageError(f"--pool is {args.pool!r}; give the least and most actors, such as 1:4")
    pool = Pool(
        min_workers=int(least),
        max_workers=int(most or least),
        cpus=args.actor_cpus,
        gpus=args.actor_gpus,
    )
    if not 1 <= pool.min_workers <= pool.max_workers:
        raise UsageError(f"--pool is {args.pool!r}; the least is 1 or more, and at most the most")
    return run_on_ray(slices, folder, settings, pool=pool, report=progress)


class _Progress:
    """One line on stderr, if that is a terminal."""

    def __init__(self) -> None:
        self._num_edits = 0
        self._num_kept = 0
        self._is_shown = sys.stderr.isatty()

    def __call__(self, num_edits: int, is_done: bool) -> None:
        """Count a slice."""
        self._num_edits += num_edits
        self._num_kept += num_edits if is_done else 0
        if self._is_shown:
            kept = f", {self._num_kept} of them before" if self._num_kept else ""
            print(f"\r{self._num_edits} edits done{kept}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Leave the line."""
        if self._is_shown and self._num_edits:
            print(file=sys.stderr)


def _exit_code(counts: Mapping[str, int]) -> int:
    if counts.get("failed") or counts.get("rejected"):
        return _NOT_DONE
    return _REVIEW if counts.get("needs_review") else _OK
