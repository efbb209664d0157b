"""From edits to checked tasks, and from tasks to splits.

Every edit gives its own update and one in another dialect; an edit without an update of its own
gives two. Some give a trap: a file that has changed since it was read (`shifted`, `gone`), a block
that stands in several places (`repeated`), or another encoding or line ending. All is a function
of the edits.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from lazy_edit_bench.dialects import MARKER_TEXT, num_places, write_update
from lazy_edit_bench.kinds import hunks_of, kind_of
from lazy_edit_bench.languages import syntax_of
from lazy_edit_bench.near_duplicates import without_duplicates
from lazy_edit_bench.readers import UndecidedError, apply_strictly, is_expansion
from lazy_edit_bench.task import DIALECTS, BenchError, Dialect, Edit, Task, read_edits, read_tasks

NEWLINE = "\n"
DATA = Path(str(files("lazy_edit_bench"))) / "data"
NUM_LINES_SHIFTED = 4


def written_edits() -> list[Edit]:
    """The edits that come with the package."""
    return read_edits(DATA / "edits.jsonl.xz")


def load_split(name: str) -> list[Task]:
    """The tasks of `small` or `written`. Raises BenchError for another name."""
    if name == "small":
        return read_tasks(DATA / "small.jsonl.xz")
    if name == "written":
        return tasks_of(written_edits())
    raise BenchError(f"no split {name!r}: small, written, full or a file of tasks")


def tasks_of(edits: Iterable[Edit], *, keep_unchecked: bool = True) -> list[Task]:
    """All tasks of the edits, duplicates left out."""
    tasks = [task for edit in edits for task in _tasks_of_edit(edit)]
    if not keep_unchecked:
        tasks = [task for task in tasks if task.checked]
    return without_duplicates(tasks)


def turn_of(text: str, num_turns: int) -> int:
    """A number below `num_turns` that depends on the text alone."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6]) % num_turns


def _tasks_of_edit(edit: Edit) -> Iterator[Task]:
    syntax = syntax_of(edit.path)
    kind = kind_of(edit.path, edit.original, edit.results[0]) if edit.results else "none"
    base = Task(
        id=edit.id,
        language=syntax.name,
        kind=kind,
        dialect=edit.form,
        treat=edit.treat,
        path=edit.path,
        instruction=edit.instruction,
        original=edit.original,
        update=edit.update or "",
        results=edit.results,
        trap=edit.trap,
        made_by=edit.made_by,
        source=edit.source,
    )
    if edit.update is not None:
        yield replace(base, id=f"{edit.id}/{edit.form}", checked=_check(base))
    if edit.treat != "apply":
        return
    others = [dialect for dialect in DIALECTS if edit.update is None or dialect != edit.form]
    first = turn_of(edit.id, len(others))
    num_wanted = 2 if edit.update is None else 1
    derived = 0
    for dialect in others[first:] + others[:first]:
        task = _derived(base, dialect)
        if task is None:
            continue
        yield task
        if derived == 0:
            yield from _traps(task)
        derived += 1
        if derived == num_wanted:
            return


def _derived(base: Task, dialect: Dialect) -> Task | None:
    """The edit in another dialect, if the second merger reads the same from it."""
    update = write_update(dialect, base.path, base.original, base.results[0])
    if update is None:
        return None
    task = replace(
        base,
        id=f"{base.id}/{dialect}",
        dialect=dialect,
        update=update,
        trap="",
        results=base.results[:1],
    )
    checked = _check(task)
    return replace(task, checked=checked) if checked == "merged" else None


def _check(task: Task) -> str:
    """How far the second merger confirms the results.

    `merged`: it reads the same. `expanded`: it does not decide, yet a result is an expansion of the
    update. `disputed`: so it is, but the merger reads something else. `stated`: nothing is to be
    applied. Nothing: unconfirmed.
    """
    if task.treat != "apply":
        return "stated"
    read = [_strictly(task, task.update)]
    if task.dialect == "markers" and read[0] not in task.results:
        # A fragment begins and ends at kept lines, as if markers stood around it.
        marker = syntax_of(task.path).comment.format(MARKER_TEXT)
        read.append(_strictly(task, f"{marker}\n{task.update.strip(NEWLINE)}\n{marker}\n"))
    if any(text in task.results for text in read):
        return "merged"
    if task.dialect == "markers" and any(
        is_expansion(task.original, task.update, result) for result in task.results
    ):
        return "expanded" if read[-1] is None else "disputed"
    return ""


def _strictly(task: Task, update: str) -> str | None:
    try:
        return apply_strictly(task.dialect, task.original, update)
    except (UndecidedError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _traps(task: Task) -> Iterator[Task]:
    """At most one trap of a derived task."""
    maker = (_shifted, _gone, _repeated, _crlf, _marked, _unended)[turn_of(f"{task.id} trap", 6)]
    trap = maker(task)
    if trap is not None:
        yield replace(trap, id=f"{task.id}/{trap.trap}")


def _shifted(task: Task) -> Task | None:
    """Lines were put at the file's head after the agent read it."""
    first = task.original.partition("\n")[0]
    if syntax_of(task.path).comment == "// {}" and task.language == "json":
        return None
    if task.dialect == "whole_file" or first.startswith(("#!", "<?", "<!", "---", "{")):
        return None
    note = syntax_of(task.path).comment
    head = "".join(
        note.format(f"Reviewed by group {number}.") + "\n"
        for number in range(1, NUM_LINES_SHIFTED + 1)
    )
    stale = task.dialect == "hashline"
    return replace(
        task,
        original=head + task.original,
        results=tuple(head + result for result in task.results),
        treat="refuse" if stale else "apply",
        trap="shifted",
        checked="stated" if stale else task.checked,
    )


def _gone(task: Task) -> Task | None:
    """The lines that the edit replaces were changed after the agent read them."""
    lines = task.original.splitlines()
    if task.dialect in ("whole_file", "markers"):
        return None
    for hunk in hunks_of(lines, task.results[0].splitlines()):
        for index in range(hunk.start, hunk.end):
            words = re.findall(r"[A-Za-z_]{4,}", lines[index])
            if words:
                word = max(words, key=len)
                lines[index] = lines[index].replace(word, f"{word}_v2")
                end = "\n" if task.original.endswith("\n") else ""
                return replace(
                    task,
                    original="\n".join(lines) + end,
                    results=(),
                    treat="refuse",
                    trap="gone",
                    checked="stated",
                )
    return None


def _repeated(task: Task) -> Task | None:
    """The block to replace stands in several places, and nothing says which is meant."""
    lines = task.original.splitlines()
    for hunk in hunks_of(lines, task.results[0].splitlines()):
        old = lines[hunk.start : hunk.end]
        if not old or not any(line.strip() for line in old) or num_places(lines, old) < 2:
            continue
        end = "\n" if task.original.endswith("\n") else ""
        readings = [
            "\n".join([*lines[:at], *hunk.new, *lines[at + len(old) :]]) + end
            for at in range(len(lines) - len(old) + 1)
            if lines[at : at + len(old)] == old
        ]
        block = ["<<<<<<< SEARCH", *old, "=======", *hunk.new, ">>>>>>> REPLACE"]
        return replace(
            task,
            dialect="search_replace",
            update="\n".join([task.path, *block]) + "\n",
            results=tuple(dict.fromkeys(readings)),
            treat="ask",
            trap="repeated",
            checked="stated",
        )
    return None


def _crlf(task: Task) -> Task | None:
    """The file ends its lines as Windows does, and the update does not."""
    if "\r" in task.original or task.dialect == "whole_file":
        return None
    results = tuple(result.replace("\n", "\r\n") for result in task.results)
    original = task.original.replace("\n", "\r\n")
    return replace(task, original=original, results=results, trap="crlf")


def _marked(task: Task) -> Task | None:
    """The file begins with a byte-order mark, which agents do not see."""
    if task.dialect == "whole_file":
        return None
    return replace(task, encoding="utf-8-sig", trap="byte_order_mark")


def _unended(task: Task) -> Task | None:
    """The file's last line has no newline."""
    original = task.original.rstrip("\n")
    results = tuple(result.rstrip("\n") for result in task.results)
    update = write_update(task.dialect, task.path, original, results[0])
    if update is None or task.dialect == "whole_file" or not original:
        return None
    trap = replace(task, original=original, results=results, update=update, trap="unended")
    return trap if _check(trap) == "merged" else None


def draw_small(tasks: Sequence[Task], size: int) -> list[Task]:
    """A part in which all languages, dialects, kinds and traps have a place, always the same."""
    groups: dict[tuple[str, str, str], list[Task]] = defaultdict(list)
    for task in sorted(tasks, key=lambda task: turn_of(f"{task.id} small", 1 << 40)):
        cell = task.trap if task.treat != "apply" or task.trap in _HARD else task.kind
        groups[(task.language, task.dialect, cell)].append(task)
    # Lazy updates take three turns where another dialect takes one.
    turns = [group for group in groups for _ in range(3 if group[1] == "markers" else 1)]
    order = sorted(turns, key=lambda group: turn_of(str(group), 1 << 40))
    chosen: list[Task] = []
    while len(chosen) < size and any(groups.values()):
        for group in order:
            if groups[group] and len(chosen) < size:
                chosen.append(groups[group].pop(0))
    return sorted(chosen, key=lambda task: task.id)


_HARD = frozenset({"shifted", "gone", "repeated", "crlf", "byte_order_mark", "unended"})
