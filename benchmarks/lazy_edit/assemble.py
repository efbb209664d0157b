"""Builds the data of the package from the case files of this repository.

`python benchmarks/lazy_edit/assemble.py` writes `edits.jsonl.xz`, `fetched.jsonl.xz`,
`small.jsonl.xz` and `unconfirmed.jsonl`. Users of the package do not need it: they have its output.
`second_reader.jsonl` is written by hand: tasks of `small` that readers did not agree with go.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE / "src"))

from lazy_edit_bench.corpus import DATA, draw_small, tasks_of  # noqa: E402
from lazy_edit_bench.sources import FetchedEdit  # noqa: E402
from lazy_edit_bench.task import Dialect, Edit, Treatment, write_jsonl  # noqa: E402

SETS = (
    "tests/cases/agent_edits",
    "tests/cases/further_agent_edits",
    "tests/cases/later_agent_edits",
    "tests/cases/unseen_agent_edits",
    "tests/cases/everyday_edits",
    "tests/cases/short_edits",
    "tests/cases/agent_written",
    "training/cases/fitting_agent_edits",
)
FORMS = "tests/cases/agent_forms"
# The report parts of the blind cases are not published.
BLIND = tuple(
    sorted(
        path.name.removesuffix(".jsonl.gz")
        for part in ("fit", "choose")
        for path in (ROOT / "training/cases/blind").glob(f"{part}_*.jsonl.gz")
    )
)
SMALL_SIZE = 500
# What apply-service's scores were fitted to alone; the other sets are not left out of `small`.
FITTED = ("fitting_agent_edits", "blind_fit")


def main() -> None:
    """Write the four files and say what they hold."""
    edits = [*_written(), *_forms()]
    fetched = []
    for name in BLIND:
        for case in _read(f"training/cases/blind/{name}"):
            if "source" not in case:
                edits.append(_blind_edit(case, name))
            elif case["source"]["registry"] == "npm":
                fetched.append(_fetched_edit(case, name))
    edits = [edit for edit in edits if "\r" not in edit.original and edit.update != ""]
    edits.sort(key=lambda edit: (edit.made_by, edit.path, edit.original, edit.id))
    tasks = tasks_of(edits)
    fair = [task for task in tasks if task.checked and not task.made_by.startswith(FITTED)]
    doubted = {task["id"] for task in _doubted()}
    small = [task for task in draw_small(fair, SMALL_SIZE) if task.id not in doubted]
    write_jsonl(DATA / "edits.jsonl.xz", edits)
    write_jsonl(DATA / "fetched.jsonl.xz", fetched)
    write_jsonl(DATA / "small.jsonl.xz", small)
    write_jsonl(
        DATA / "unconfirmed.jsonl",
        (
            {"id": task.id, "made_by": task.made_by, "checked": task.checked or "none"}
            for task in tasks
            if task.checked in ("", "disputed")
        ),
    )
    print(f"{len(edits)} edits, {len(fetched)} of fetched files; {len(tasks)} tasks")
    for name in ("dialect", "kind", "language", "treat", "trap", "checked", "made_by"):
        print(name, dict(Counter(getattr(task, name) for task in tasks).most_common()))
        print("   small", dict(Counter(getattr(task, name) for task in small).most_common()))


def _read(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(ROOT / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _doubted() -> Iterator[dict[str, str]]:
    with (DATA / "second_reader.jsonl").open(encoding="utf-8") as lines:
        next(lines)  # the canary
        yield from map(json.loads, lines)


def _written() -> Iterator[Edit]:
    for name in SETS:
        made_by = name.rpartition("/")[2]
        for case in _read(name):
            update = case["update"]
            if "*** Begin Patch" in update:
                continue
            form: Dialect = "markers"
            if "<<<<<<< SEARCH" in update:
                form = "search_replace"
            elif "@@ -" in update or update.startswith(("--- ", "diff --git")):
                form = "diff"
            style = case.get("style") or ""
            treat: Treatment = "apply"
            if case.get("must_refuse"):
                treat = "ask" if "ambiguous" in style else "refuse"
            yield Edit(
                id=f"{made_by}/{case['id']}",
                path=case["path"],
                original=case["original"],
                results=(case["expected"],) if treat == "apply" else (),
                update=update,
                form=form,
                treat=treat,
                trap=style.replace(" ", "_") if made_by == "agent_written" else "",
                instruction=case.get("instruction") or "",
                made_by=made_by,
            )


def _forms() -> Iterator[Edit]:
    for case in _read(FORMS):
        if case["form"] not in ("search_replace", "hashline"):
            continue
        update = case["update"]
        yield Edit(
            id=f"agent_forms/{case['id']}",
            path=case["path"],
            original=case["original"],
            results=tuple(case["results"]),
            update=update if isinstance(update, str) else json.dumps(update, ensure_ascii=False),
            form=case["form"],
            treat=case["treat"],
            trap=case["situation"],
            instruction=case["instruction"],
            made_by="agent_forms",
        )


def _blind_edit(case: dict[str, Any], name: str) -> Edit:
    fetched = _fetched_edit(case, name)
    return fetched.whole(case["original"])


def _fetched_edit(case: dict[str, Any], name: str) -> FetchedEdit:
    source = case.get("source") or {}
    treat: Treatment = "apply" if case["treat"] == "merge" else case["treat"]
    return FetchedEdit(
        id=f"blind_{name}/{case['id']}",
        path=case["path"],
        package=source.get("package", ""),
        version=source.get("version", ""),
        file=source.get("path", ""),
        sha256=source.get("sha256", ""),
        pieces=case["results"],
        update=case["update"],
        treat=treat,
        trap=case["kind"],
        instruction=case["instruction"],
        made_by=f"blind_{name}",
    )


if __name__ == "__main__":
    main()
