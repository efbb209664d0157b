"""The command `lazy-edit-bench`."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from lazy_edit_bench import __version__
from lazy_edit_bench.corpus import load_split
from lazy_edit_bench.figures import compare, summarise
from lazy_edit_bench.generator import full_split, generate
from lazy_edit_bench.report import leaderboard_page, report_page
from lazy_edit_bench.result_file import Result, read_result, write_result
from lazy_edit_bench.run import run_tasks
from lazy_edit_bench.sources import fetch, folder_files, package_files
from lazy_edit_bench.speed import measure
from lazy_edit_bench.systems.endpoints import Endpoint
from lazy_edit_bench.systems.registry import NAMES, open_system
from lazy_edit_bench.systems.workers import LIBRARIES, install
from lazy_edit_bench.tables import breakdown_table, summary_table
from lazy_edit_bench.task import BenchError, Task, read_tasks, write_jsonl

KEY_VARIABLE = "LAZY_EDIT_BENCH_API_KEY"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 2 for what the user can mend."""
    chosen = _parser().parse_args(arguments)
    try:
        chosen.run(chosen)
    except BenchError as error:
        print(f"lazy-edit-bench: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="lazy-edit-bench", description=__doc__)
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument("--home", type=Path, default=Path.home() / ".cache/lazy-edit-bench",
                        help="where systems and fetched files lie")  # fmt: skip
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: object, help_text: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=help_text, description=help_text)
        made.set_defaults(run=run)
        return made

    def with_split(made: argparse.ArgumentParser) -> None:
        made.add_argument("--split", default="small",
                          help="small, written, full or a file of tasks")  # fmt: skip

    def with_endpoint(made: argparse.ArgumentParser) -> None:
        made.add_argument(
            "--url", help=f"address of a service; its key is read from {KEY_VARIABLE}"
        )
        made.add_argument("--model", default="auto")

    with_split(command("list", _list, "count a split's tasks, and name the systems"))
    one = command("run", _run, "put a split to a system")
    one.add_argument("--system", required=True, help=", ".join(NAMES))
    with_split(one)
    with_endpoint(one)
    one.add_argument("--out", type=Path, help="the result file; SYSTEM-SPLIT.json if not given")
    one.add_argument("--at-once", type=int, default=1, help="tasks that are open at a time")
    one.add_argument("--dialect", action="append", help="only tasks of this dialect")
    one.add_argument("--system-version", help="the version to note, for a service")
    one = command("score", _score, "the figures of result files")
    one.add_argument("results", nargs="+", type=Path)
    one.add_argument("--by", choices=("language", "kind", "dialect", "size", "trap", "made_by"))
    one.add_argument("--price-in", type=float, default=0.0, help="of a million tokens read")
    one.add_argument("--price-out", type=float, default=0.0, help="of a million tokens written")
    with_split(one)
    one = command("compare", _compare, "the difference of two results, task by task")
    one.add_argument("results", nargs=2, type=Path)
    with_split(one)
    one = command("report", _report, "one HTML page of a result, with its failures")
    one.add_argument("results", type=Path)
    one.add_argument("--out", type=Path, required=True)
    with_split(one)
    one = command("leaderboard", _leaderboard, "one HTML page of many results")
    one.add_argument("results", nargs="+", type=Path)
    one.add_argument("--out", type=Path, required=True)
    with_split(one)
    one = command("speed", _speed, "use a split as a load on a service")
    one.add_argument("--system", required=True)
    one.add_argument("--at-once", type=int, nargs="+", default=[1, 8, 32])
    one.add_argument("--dialect", action="append", help="only tasks of this dialect")
    with_split(one)
    with_endpoint(one)
    one = command("install", _install, "install a library's system in its own environment")
    one.add_argument("systems", nargs="+", choices=sorted(LIBRARIES))
    command("fetch", _fetch, "get the releases that the split `full` is made of, with npm")
    one = command("generate", _generate, "write tasks that nobody has seen: choose a seed")
    one.add_argument("--seed", required=True, help="keep it to yourself")
    one.add_argument(
        "--files", type=Path, help="a folder of sources; the fetched releases if unset"
    )
    one.add_argument("--count", type=int, default=1000, help="edits at most")
    one.add_argument("--out", type=Path, required=True)
    return parser


def _tasks(chosen: argparse.Namespace) -> list[Task]:
    path = Path(chosen.split)
    if path.suffix in (".jsonl", ".xz"):
        return read_tasks(path)
    if chosen.split == "full":
        return full_split(chosen.home / "files")
    return load_split(chosen.split)


def _endpoint(chosen: argparse.Namespace) -> Endpoint | None:
    if chosen.url is None:
        return None
    return Endpoint(url=chosen.url, model=chosen.model, key=os.environ.get(KEY_VARIABLE, ""))


def _list(chosen: argparse.Namespace) -> None:
    tasks = _tasks(chosen)
    print(f"{chosen.split}: {len(tasks)} tasks")
    for name in ("dialect", "kind", "treat", "language", "size", "trap", "checked", "made_by"):
        counts = Counter(getattr(task, name) or "none" for task in tasks).most_common()
        print(f"{name}: " + ", ".join(f"{value} {count}" for value, count in counts))
    print("systems: " + ", ".join(NAMES))


def _run(chosen: argparse.Namespace) -> None:
    tasks = _tasks(chosen)
    if chosen.dialect:
        tasks = [task for task in tasks if task.dialect in chosen.dialect]
    system = open_system(chosen.system, folder=chosen.home / "systems", endpoint=_endpoint(chosen))
    if chosen.system_version:
        system.version = chosen.system_version
    try:
        result = run_tasks(system, tasks, split=chosen.split, num_at_once=chosen.at_once)
    finally:
        system.close()
    out = chosen.out or Path(f"{system.name.replace(':', '-')}-{Path(chosen.split).stem}.json")
    write_result(out, result, tasks)
    print(summary_table([result]))
    print(out)


def _score(chosen: argparse.Namespace) -> None:
    tasks = _tasks(chosen)
    results = [read_result(path, tasks) for path in chosen.results]
    print(summary_table(results))
    if chosen.price_in or chosen.price_out:
        for result in results:
            cost = summarise(result.rows).cost(chosen.price_in, chosen.price_out)
            print(f"{result.system}: {cost:.4f} for {len(result.rows)} tasks")
    if chosen.by:
        for result in results:
            print(breakdown_table(result, tasks, chosen.by))


def _compare(chosen: argparse.Namespace) -> None:
    tasks = _tasks(chosen)
    one, other = (read_result(path, tasks) for path in chosen.results)
    found = compare(one.rows, other.rows)
    print(
        f"{one.system} less {other.system}: {found.points:+.1f} points of right tasks"
        f" ({found.low:+.1f} to {found.high:+.1f}), {found.num_tasks} tasks;"
        f" {found.one_alone} right in the first alone, {found.other_alone} in the second;"
        f" p = {found.p_value:.2g}\n"
        f"A difference of 1 point is seen in {found.num_tasks_needed()} tasks (power 80 %)."
    )


def _report(chosen: argparse.Namespace) -> None:
    tasks = _tasks(chosen)
    page = report_page(read_result(chosen.results, tasks), tasks)
    chosen.out.write_text(page, encoding="utf-8")
    print(chosen.out)


def _leaderboard(chosen: argparse.Namespace) -> None:
    tasks = _tasks(chosen)
    results: list[Result] = [read_result(path, tasks) for path in chosen.results]
    chosen.out.write_text(leaderboard_page(results, tasks), encoding="utf-8")
    print(chosen.out)


def _speed(chosen: argparse.Namespace) -> None:
    tasks = _tasks(chosen)
    if chosen.dialect:
        tasks = [task for task in tasks if task.dialect in chosen.dialect]
    system = open_system(chosen.system, folder=chosen.home / "systems", endpoint=_endpoint(chosen))
    try:
        for num_at_once in chosen.at_once:
            print(asdict(measure(system, tasks, num_at_once=num_at_once)))
    finally:
        system.close()


def _install(chosen: argparse.Namespace) -> None:
    for name in chosen.systems:
        install(name, chosen.home / "systems")
        print(name)


def _fetch(chosen: argparse.Namespace) -> None:
    fetch(chosen.home / "files")


def _generate(chosen: argparse.Namespace) -> None:
    files = folder_files(chosen.files) if chosen.files else package_files(chosen.home / "files")
    tasks = generate(list(files), seed=chosen.seed, count=chosen.count)
    if not tasks:
        raise BenchError("the files gave no edit; they need 30 lines or more and a known language")
    write_jsonl(chosen.out, tasks)
    print(f"{chosen.out}: {len(tasks)} tasks")
