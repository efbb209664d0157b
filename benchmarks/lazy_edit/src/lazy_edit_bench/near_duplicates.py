"""Leaves out tasks that are, or nearly are, the same as one before them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from lazy_edit_bench.task import Task

# Two updates of one dialect with this share of equal lines, over files just as alike, are one task.
NEAR = 0.9


def without_duplicates(tasks: Iterable[Task]) -> list[Task]:
    """The tasks in order, the first of each group of near-duplicates kept."""
    kept: list[Task] = []
    by_line: dict[tuple[str, str], list[int]] = defaultdict(list)
    shapes: list[tuple[frozenset[str], frozenset[str]]] = []
    seen: set[tuple[str, str, str]] = set()
    for task in tasks:
        exact = (task.dialect, task.original + task.encoding, task.update)
        if exact in seen:
            continue
        update, original = _lines(task.update), _lines(task.original)
        rivals = {
            index for line in sorted(update, key=len)[-3:] for index in by_line[task.dialect, line]
        }
        if any(
            kept[index].trap == task.trap
            and _alike(update, shapes[index][0])
            and _alike(original, shapes[index][1])
            for index in rivals
        ):
            continue
        seen.add(exact)
        for line in sorted(update, key=len)[-3:]:
            by_line[task.dialect, line].append(len(kept))
        shapes.append((update, original))
        kept.append(task)
    return kept


def _lines(text: str) -> frozenset[str]:
    """The lines as a set, white space and numbers made equal."""
    return frozenset(
        re.sub(r"\d+", "0", " ".join(line.split())) for line in text.splitlines() if line.strip()
    )


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    union = len(one | other)
    return not union or len(one & other) / union >= NEAR
