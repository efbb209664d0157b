"""Edits of small files, made by leaving out what an edit of a larger file does not touch.

In a small file an update shows little, and every line of it stands once. The paragraphs that an
edit changes stay, those that its update shows, and one more; the update stays as it is.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec

from apply_service.edit.text.alignment import bounded_hunks
from apply_service.edit.text.text_file import split_lines
from apply_service.evaluate.cases.case_file import Case
from training.merges.examples import fold_of

# A small file has at most so many lines, and at most this share of the whole file.
MAX_LINES, MAX_SHARE = 40, 0.6


def small_file_cases(cases: Sequence[Case], limit: int, seed: int = 4) -> Iterator[Case]:
    """At most `limit` edits of small files, in the folds of the whole ones."""
    rng = random.Random(seed)
    found = (
        (case, _made_small(case, rng))
        for case in rng.sample(cases, len(cases))
        if not case.must_refuse and not case.also
    )
    in_fold = (made for case, made in found if made is not None and fold_of(made) == fold_of(case))
    yield from islice(in_fold, limit)


def _made_small(case: Case, rng: random.Random) -> Case | None:
    original, _ = split_lines(case.original)
    expected, _ = split_lines(case.expected)
    update, _ = split_lines(case.update)
    hunks = bounded_hunks(original, expected)
    shown = {line.strip() for line in update if len(line.strip()) > 1}
    touched = {
        place
        for hunk in hunks
        for place in range(max(hunk.old_start - 1, 0), min(hunk.old_end + 1, len(original)))
    }
    paragraphs = _paragraphs(original)
    kept = [
        span
        for span in paragraphs
        if any(at in touched or original[at].strip() in shown for at in range(*span))
    ]
    others = [span for span in paragraphs if span not in kept]
    kept = sorted([*kept, *rng.sample(others, min(1, len(others)))])
    num_kept = sum(end - start for start, end in kept)
    if not 2 < num_kept <= min(MAX_LINES, MAX_SHARE * len(original)):
        return None
    gone = {at for span in paragraphs if span not in kept for at in range(*span)}
    merged: list[str] = []
    place = 0
    for hunk in hunks:
        merged += [original[at] for at in range(place, hunk.old_start) if at not in gone]
        merged += expected[hunk.new_start : hunk.new_end]
        place = hunk.old_end
    merged += [original[at] for at in range(place, len(original)) if at not in gone]
    small = [line for at, line in enumerate(original) if at not in gone]
    return msgspec.structs.replace(
        case,
        id=f"small-{case.id}",
        original="\n".join(small) + "\n",
        expected="\n".join(merged) + "\n",
        style="generated small file",
    )


def _paragraphs(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Spans that begin with a line at the margin behind a blank one, blank lines included."""
    starts = [
        at
        for at, line in enumerate(lines)
        if at == 0 or (line.strip() and not line[0].isspace() and not lines[at - 1].strip())
    ]
    return list(zip(starts, [*starts[1:], len(lines)], strict=True))
