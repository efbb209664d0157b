"""Features of many candidates at once against loops over the lines and rows of each."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apply_service.edit.place.candidates.candidate import Candidate
from apply_service.edit.place.candidates.original_facts import OriginalFacts, balance
from apply_service.edit.place.candidates.part import Part
from apply_service.edit.place.candidates.parts import parts_of
from apply_service.edit.place.features import candidate_features
from apply_service.edit.place.features.candidate_features import (
    CANDIDATE_FEATURES,
    candidate_rows,
)
from apply_service.edit.read.segment import Segment, SegmentLine, Snippet

LINES = [
    *("def load(path):", "def save(path, text):", "class Box:", "    def size(self):"),
    *("    return path", "    return path.read()", "        return self.items", "    }", "{", ""),
    *("total = count(items)", "total = count(item)", "    save(path, total)", "# note"),
]
TEXTS = st.lists(st.sampled_from(LINES), min_size=1, max_size=9)
Reference = Callable[[Part, Candidate], float]


def part_of(file: list[str], sent: list[str]) -> Part:
    lines = tuple(SegmentLine(text, number) for number, text in enumerate(sent, 1))
    segment = Segment(lines=lines, has_gap_before=True, has_gap_after=True, next_indent=4)
    snippet = Snippet(format="lazy", segments=(segment,))
    (part,) = parts_of(OriginalFacts(file, "python"), snippet)
    return part


def kept_of(one: Candidate) -> set[int]:
    return {line for run in one.kept for line in range(run.start, run.end)}


def removed_of(one: Candidate) -> list[int]:
    stay = kept_of(one) | {line for _, line in one.pairs}
    return [line for line in range(one.start, one.end) if line not in stay]


def added_of(part: Part, one: Candidate) -> list[int]:
    known = {row for row, _ in one.pairs} | set(one.dropped)
    return [row for row, _ in enumerate(part.rows) if row not in known]


def between_of(part: Part, one: Candidate) -> list[tuple[int, int]]:
    """Between two pairs, or a pair and a border: lines lost, and rows that come."""
    found, above = [], (-1, one.start - 1)
    for row, line in [*one.pairs, (len(part.rows), one.end)]:
        lost = [at for at in range(above[1] + 1, line) if at not in kept_of(one)]
        found.append((len(lost), row - above[0] - 1))
        above = (row, line)
    return found


def likeness_of(part: Part, rows: range, lines: range) -> float:
    if not len(lines):
        return 1.0
    return float(np.mean([max(part.matcher.ratios[row, line] for row in rows) for line in lines]))


def likeness_ahead(part: Part, one: Candidate) -> float:
    if not one.pairs:
        return 1.0
    row, line = one.pairs[0]
    return likeness_of(part, range(max(row, 1)), range(one.start, line))


def likeness_behind(part: Part, one: Candidate) -> float:
    if not one.pairs:
        return 1.0
    row, line = one.pairs[-1]
    last = len(part.rows)
    return likeness_of(part, range(min(row + 1, last - 1), last), range(line + 1, one.end))


def shared_words(part: Part, one: Candidate) -> float:
    words = {word for row in added_of(part, one) for word in part.words[row]}
    near = range(max(one.start - 2, 0), min(one.end + 2, len(part.original)))
    counts = part.original.word_counts
    return sum(1 / counts[word] for line in near for word in part.original.words[line] & words)


def twin_below(part: Part, one: Candidate) -> float:
    ratios = part.matcher.ratios
    equal = {row for row, line in one.pairs if ratios[row, line] >= 0.99}
    changed = [row for row in range(len(part.rows)) if row not in equal]
    if one.end == len(part.original) or not changed:
        return 0.0
    return float(max(ratios[row, one.end] for row in changed))


def rest_of_block(part: Part, one: Candidate) -> float:
    rows, ends, after, rest = part.rows, part.original.block_ends, part.indent_after, 0
    for row, line in one.pairs:
        behind = [other.indent for other in rows[row + 1 :]]
        if not behind or behind[0] <= rows[row].indent:
            continue
        if min(behind) <= rows[row].indent or (after is not None and after <= rows[row].indent):
            rest = max(rest, ends[line] - one.end)
    return rest


def num_cut(part: Part, one: Candidate) -> float:
    definitions = part.original.definitions
    return sum(one.start <= found.header < one.end < found.end for found in definitions)


def balance_change(part: Part, one: Candidate) -> float:
    lines = part.original.stripped
    written = [row for number, row in enumerate(part.rows) if number not in one.dropped]
    gone = [lines[line] for line in range(one.start, one.end) if line not in kept_of(one)]
    return sum(balance(row.stripped) for row in written) - sum(map(balance, gone))


def shift_share(part: Part, one: Candidate) -> float:
    moved = [
        part.original.indents[line] - part.rows[row].indent == one.shift_of(row)
        for row, line in one.pairs
    ]
    return sum(moved) / len(moved) if moved else -1.0


def kept_beside_added(part: Part, one: Candidate) -> float:
    paired = {row for row, _ in one.pairs}
    return sum(not {run.row, run.row - 1} <= paired for run in one.kept)


def weight_of_lines(part: Part, lines: list[int]) -> float:
    return float(sum(part.matcher.line_weights[line] for line in lines))


REFERENCES: dict[str, Reference] = {
    "num_removed": lambda _, one: len(removed_of(one)),
    "removed_weight": lambda part, one: weight_of_lines(part, removed_of(one)),
    "num_added": lambda part, one: len(added_of(part, one)),
    "num_lost": lambda part, one: sum(lost for lost, come in between_of(part, one) if not come),
    "longest_lost": lambda part, one: max(
        (lost for lost, come in between_of(part, one) if not come), default=0
    ),
    "num_inserted": lambda part, one: sum(come for lost, come in between_of(part, one) if not lost),
    "removed_least_likeness": lambda part, one: min(
        (float(part.matcher.ratios[:, line].max()) for line in removed_of(one)), default=1.0
    ),
    "num_kept_lines": lambda _, one: len(kept_of(one)),
    "num_kept_runs": lambda _, one: len(one.kept),
    "num_dropped": lambda _, one: len(one.dropped),
    "num_restored": lambda _, one: len(set(one.dropped) & {run.row for run in one.kept}),
    "lines_ahead": lambda _, one: (one.pairs[0][1] if one.pairs else one.end) - one.start,
    "rows_behind": lambda part, one: len(part.rows) - 1 - (one.pairs[-1][0] if one.pairs else -1),
    "likeness_ahead": likeness_ahead,
    "likeness_behind": likeness_behind,
    "shared_words": shared_words,
    "twin_below": twin_below,
    "rest_of_block": rest_of_block,
    "num_cut": num_cut,
    "balance_change": balance_change,
    "shift_share": shift_share,
    "kept_beside_added": kept_beside_added,
}


@given(TEXTS, TEXTS.filter(any))
def test_columns_are_what_loops_count(file: list[str], sent: list[str]) -> None:
    part = part_of(file, sent)
    rows = candidate_rows(part)
    assert rows.shape == (len(part.candidates), len(CANDIDATE_FEATURES.names))
    for name, reference in REFERENCES.items():
        expected = [reference(part, one) for one in part.candidates]
        found = rows[:, CANDIDATE_FEATURES.names.index(name)]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5, err_msg=name)


def test_candidates_of_long_spans_are_looked_at_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    part = part_of(LINES * 2, ["def load(path):", "    return path.write(total)"])
    together = candidate_rows(part)
    monkeypatch.setattr(candidate_features, "MAX_TABLE_CELLS", 20)
    assert len(part.candidates) > 20
    np.testing.assert_array_equal(candidate_rows(part), together)


def test_lines_that_bind_or_call_something_else_are_told_from_changed_values() -> None:
    column = CANDIDATE_FEATURES.names.index("num_other_heads")
    for sent, num in (("    retries = 5", 0), ("    retry = 3", 1)):
        part = part_of(["def run():", "    retries = 3", "    return retries"], [sent])
        found = {
            (one.start, one.end): row[column]
            for one, row in zip(part.candidates, candidate_rows(part), strict=True)
            if one.pairs and not one.dropped
        }
        assert found[1, 2] == num
