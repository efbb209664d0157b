"""HTML pages that open without a network: one result with its failures, and many side by side."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise

from lazy_edit_bench import __version__
from lazy_edit_bench.figures import Share, compare, is_right, summarise
from lazy_edit_bench.judge import file_text
from lazy_edit_bench.result_file import Result, Row
from lazy_edit_bench.tables import HEADINGS, breakdown, cells, ranked
from lazy_edit_bench.task import Task

MAX_FAILURES = 200
MAX_DIFF_LINES = 120
BAR_WIDTH = 420
_PARTS = (
    ("right", "#2a7f4f", "right, asked or refused rightly"),
    ("safe", "#c9cdd2", "asked or refused needlessly, failed"),
    ("harmless", "#e0b04a", "silent, harmless"),
    ("harmful", "#c0392b", "silent, harmful"),
)
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem;
  color: #1c1f23; background: #fff }
h1 { font-size: 1.6rem; margin-bottom: .2rem } h2 { font-size: 1.15rem; margin-top: 2rem }
table { border-collapse: collapse; font-size: 13px; width: 100% }
th, td { text-align: left; padding: .3rem .5rem; border-bottom: 1px solid #e3e6ea;
  vertical-align: top }
th { font-weight: 600 } .muted { color: #667 } .legend span { margin-right: 1.2rem }
.legend i { display: inline-block; width: .8em; height: .8em; margin-right: .35em }
details { border-top: 1px solid #e3e6ea; padding: .4rem 0 } summary { cursor: pointer }
.three { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: .6rem }
pre { font: 12px/1.45 ui-monospace, monospace; background: #f6f7f9; padding: .6rem; overflow: auto;
  max-height: 30rem; margin: .3rem 0 }
.add { color: #22683f } .del { color: #b03024 } .at { color: #6a5acd }
"""


def report_page(result: Result, tasks: Sequence[Task]) -> str:
    """Figures, bars by language, kind, dialect and size, and the failures in three views."""
    parts = [
        f"<h1>{escape(result.system)} {escape(result.version)}</h1>",
        f'<p class="muted">{escape(result.command)}<br>Split {escape(result.split)},'
        f" {len(result.rows)} tasks ({result.tasks_hash}), {result.date},"
        f" {escape(result.machine)}, lazy-edit-bench {__version__}</p>",
        _legend(),
        _bar(result.rows),
        _table(HEADINGS, [cells(result, summarise(result.rows))]),
    ]
    for by in ("dialect", "kind", "language", "size", "trap", "made_by"):
        parts.append(f"<h2>By {by.replace('_', ' ')}</h2>")
        rows: list[list[str | Share]] = []
        for value, one in breakdown(result, tasks, by).items():
            if one.num_offered:
                rows.append([value, str(one.num_offered), one.right, one.silent_harmful])
        parts.append(_share_table((by, "offered", "right", "silent harmful"), rows))
    parts += ["<h2>Failures</h2>", *_failures(result, tasks)]
    return _page(f"{result.system}: lazy edits", parts)


def leaderboard_page(results: Sequence[Result], tasks: Sequence[Task]) -> str:
    """All results of one split, best first, with the differences of neighbours."""
    ordered = ranked(results)
    parts = [
        "<h1>Lazy edits: who applies them right, and who is wrong in silence</h1>",
        f'<p class="muted">{len(tasks)} tasks, lazy-edit-bench {__version__}. Ordered by the'
        " share of all tasks that are right less the share that are silently harmful; a dialect"
        " that a system does not speak is not offered. Shares are of the tasks offered, with 95 %"
        " intervals.</p>",
        _legend(),
    ]
    bars = [
        f"<tr><td>{escape(result.system)}</td><td>{_bar(result.rows)}</td></tr>"
        for result, _ in ordered
    ]
    parts.append(f"<table>{''.join(bars)}</table><h2>Figures</h2>")
    parts.append(_table(HEADINGS, [cells(result, figures) for result, figures in ordered]))
    parts.append("<h2>Neighbours, task by task</h2>")
    pairs = []
    for (one, _), (other, _) in pairwise(ordered):
        found = compare(one.rows, other.rows)
        if found.num_tasks:
            pairs.append([
                f"{one.system} less {other.system}", str(found.num_tasks),
                f"{found.points:+.1f} ({found.low:+.1f} to {found.high:+.1f})",
                f"{found.p_value:.2g}", str(found.num_tasks_needed()),
            ])  # fmt: skip
    parts.append(
        _table(
            ("pair", "tasks of both", "points of right", "p", "tasks for a 1-point difference"),
            pairs,
        )
    )
    parts.append("<h2>Commands</h2>")
    parts.append(
        _table(
            ("system", "version", "command", "date", "machine"),
            [[one.system, one.version, one.command, one.date, one.machine] for one, _ in ordered],
        )
    )
    return _page("Lazy edits: leaderboard", parts)


def _page(title: str, parts: Iterable[str]) -> str:
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style><body>{''.join(parts)}</body></html>\n"
    )


def _legend() -> str:
    spans = (f'<span><i style="background:{c}"></i>{escape(text)}</span>' for _, c, text in _PARTS)
    return f'<p class="legend">{"".join(spans)}</p>'


def _bar(rows: Sequence[Row]) -> str:
    """One bar of all tasks; tasks that were not offered are blank."""
    outcomes = [row.judgement.outcome for row in rows]
    offered = sum(outcome != "not_offered" for outcome in outcomes)
    counts = {
        "right": sum(is_right(row.judgement) for row in rows),
        "harmless": outcomes.count("silent_harmless"),
        "harmful": outcomes.count("silent_harmful"),
    }
    counts["safe"] = offered - sum(counts.values())
    drawn, x = [], 0.0
    for name, colour, text in _PARTS:
        width = BAR_WIDTH * counts[name] / max(1, len(rows))
        drawn.append(
            f'<rect x="{x:.1f}" width="{width:.1f}" height="16" fill="{colour}">'
            f"<title>{escape(text)}: {counts[name]}</title></rect>"
        )
        x += width
    frame = f'<rect width="{BAR_WIDTH}" height="16" fill="none" stroke="#c9cdd2"/>'
    label = f"{counts['right']} right, {counts['harmful']} harmful of {len(rows)}"
    shown = f'<text x="{BAR_WIDTH + 8}" y="13" font-size="12">{label}</text>'
    return (
        f'<svg width="{BAR_WIDTH + 230}" height="18" role="img" aria-label="{label}">'
        f"{''.join(drawn)}{frame}{shown}</svg>"
    )


def _share_table(headings: Sequence[str], rows: Iterable[Sequence[str | Share]]) -> str:
    """A table whose shares are drawn with their intervals."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(
        "<tr>"
        + "".join(
            f"<td>{_whisker(cell) if isinstance(cell, Share) else escape(cell)}</td>"
            for cell in row
        )
        + "</tr>"
        for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _whisker(share: Share) -> str:
    low, high = share.interval
    return (
        '<svg width="330" height="14"><rect width="160" height="14" fill="#f0f2f4"/>'
        f'<line x1="{160 * low:.1f}" x2="{160 * high:.1f}" y1="7" y2="7" stroke="#334"/>'
        f'<circle cx="{160 * share.value:.1f}" cy="7" r="3.5" fill="#334"/>'
        f'<text x="168" y="11" font-size="12">{escape(str(share))}</text></svg>'
    )


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _failures(result: Result, tasks: Sequence[Task]) -> Iterable[str]:
    """Harmful ones first; update, expected change and made change side by side."""
    by_id = {task.id: task for task in tasks}
    order = (
        "silent_harmful",
        "silent_harmless",
        "failed",
        "asked_needlessly",
        "refused_needlessly",
    )
    missed = [row for row in result.rows if row.judgement.outcome in order]
    missed.sort(key=lambda row: order.index(row.judgement.outcome))
    num_shown = min(MAX_FAILURES, len(missed))
    yield f"<p>{len(missed)} tasks were missed; the first {num_shown} follow.</p>"
    for row in missed[:MAX_FAILURES]:
        task = by_id[row.id]
        original = file_text(task)
        wanted = f"must {task.treat}"
        if task.results and task.treat == "apply":
            wanted = _diff(original, file_text(task, task.results[0]))
        made = escape(row.answer.note or row.answer.status)
        if row.answer.text is not None:
            made = _diff(original, row.answer.text)
        elif row.answer.choices:
            made = "<hr>".join(_diff(original, choice) for choice in row.answer.choices)
        yield (
            f"<details><summary>{escape(row.judgement.outcome.replace('_', ' '))}:"
            f" {escape(task.id)} <span class=muted>{task.kind}, {task.language},"
            f" {escape(task.trap)}</span></summary><p>{escape(task.instruction)}</p>"
            f'<div class="three"><div>Update<pre>{escape(task.update)}</pre></div>'
            f"<div>Expected<pre>{wanted}</pre></div><div>Got<pre>{made}</pre></div></div></details>"
        )


def _diff(original: str, text: str) -> str:
    lines = list(difflib.unified_diff(original.splitlines(), text.splitlines(), n=2, lineterm=""))[
        2:
    ]
    marked = []
    for line in lines[:MAX_DIFF_LINES]:
        style = {"+": "add", "-": "del", "@": "at"}.get(line[:1])
        marked.append(f'<span class="{style}">{escape(line)}</span>' if style else escape(line))
    if len(lines) > MAX_DIFF_LINES:
        marked.append(f"… {len(lines) - MAX_DIFF_LINES} more lines")
    return "\n".join(marked) or "no change of a line"
