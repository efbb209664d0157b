"""Figures as Markdown tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from lazy_edit_bench.figures import Share, Summary, summarise
from lazy_edit_bench.result_file import Result, Row
from lazy_edit_bench.task import Task

HEADINGS = (
    "system", "version", "tasks offered", "right", "silent harmful", "silent harmless",
    "asked rightly", "asked needlessly", "refused rightly", "refused needlessly",
    "right after one question", "p50, p90 in ms",
)  # fmt: skip


def ranked(results: Sequence[Result]) -> list[tuple[Result, Summary]]:
    """Best first: the share of right tasks of the whole split less that of harmful ones."""
    summaries = [(result, summarise(result.rows)) for result in results]

    def net(pair: tuple[Result, Summary]) -> float:
        figures = pair[1]
        return (figures.right.count - figures.silent_harmful.count) / max(1, figures.num_tasks)

    return sorted(summaries, key=net, reverse=True)


def summary_table(results: Sequence[Result]) -> str:
    """A row for each result."""
    return _table(HEADINGS, [cells(result, figures) for result, figures in ranked(results)])


def cells(result: Result, figures: Summary) -> list[str]:
    """The cells below `HEADINGS`."""
    return [
        result.system,
        result.version,
        f"{figures.num_offered} of {figures.num_tasks}",
        str(figures.right),
        str(figures.silent_harmful),
        _short(figures.silent_harmless),
        _short(figures.asked_rightly),
        _short(figures.asked_needlessly),
        _short(figures.refused_rightly),
        _short(figures.refused_needlessly),
        _short(figures.after_question),
        f"{1000 * figures.seconds_p50:.1f}, {1000 * figures.seconds_p90:.1f}",
    ]


def breakdown(result: Result, tasks: Sequence[Task], by: str) -> dict[str, Summary]:
    """The figures of each value of a task's member, the most frequent value first."""
    value_of = {task.id: str(getattr(task, by) or "none") for task in tasks}
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in result.rows:
        groups[value_of[row.id]].append(row)
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    return {value: summarise(rows) for value, rows in ordered}


def breakdown_table(result: Result, tasks: Sequence[Task], by: str) -> str:
    """One result by a task's member."""
    rows = [
        [value, f"{one.num_offered} of {one.num_tasks}", str(one.right), str(one.silent_harmful)]
        for value, one in breakdown(result, tasks, by).items()
    ]
    return f"\n{result.system}\n" + _table((by, "offered", "right", "silent harmful"), rows)


def _short(share: Share) -> str:
    return f"{share.count} of {share.total}"


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])
