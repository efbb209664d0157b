"""Alignments of rows and lines against brute force."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apply_service.edit.place.candidates.filled_lines import FilledLines, moved
from apply_service.edit.place.candidates.row_matcher import RowMatcher, weight_of
from apply_service.edit.place.candidates.rows import Row
from apply_service.edit.text.block_bounds import columns

TEXTS = ["}", "return total", "    return total", "total += value", "total += values", "  x = 1"]
LINES = st.lists(st.sampled_from(TEXTS), min_size=1, max_size=6)


def best_by_brute_force(matcher: RowMatcher, num_rows: int, start: int, end: int) -> float:
    """The most evidence of any way to give rows rising lines within [start, end)."""
    best = 0.0
    for size in range(1, min(num_rows, end - start) + 1):
        for rows in combinations(range(num_rows), size):
            for lines in combinations(range(start, end), size):
                gains = [matcher.evidence[pair] for pair in zip(rows, lines, strict=True)]
                best = max(best, float(sum(gains)))
    return best


@given(LINES, LINES)
def test_an_alignment_is_the_best_one(lines: list[str], texts: list[str]) -> None:
    matcher = RowMatcher(FilledLines(lines), [Row(text) for text in texts])
    scores = matcher.best_scores(range(len(lines)))
    for start in range(len(lines)):
        ends = range(start, len(lines) + 1)
        for end, pairs in zip(ends, matcher.alignments(start, ends), strict=True):
            best = best_by_brute_force(matcher, len(texts), start, end)
            assert scores[start, end] == pytest.approx(best, abs=1e-4)
            assert sum(matcher.evidence[pair] for pair in pairs) == pytest.approx(best, abs=1e-4)
            assert pairs == sorted(set(pairs))
            assert len({row for row, _ in pairs}) == len({line for _, line in pairs}) == len(pairs)
            assert all(start <= line < end for _, line in pairs)


def test_equal_lines_are_the_most_alike_whatever_their_indentation() -> None:
    matcher = RowMatcher(FilledLines(["a = 1", "    save(item, path)"]), [Row("save(item, path)")])
    assert matcher.is_equal.tolist() == [[False, True]]
    assert matcher.ratios[0, 1] == 1.0


@pytest.mark.parametrize(
    ("sent", "line"),
    [
        ("set -euo pipefail", "set -eu"),
        ('<img src="/canoe.jpg" alt="A green canoe" loading="lazy">', '<img src="/canoe.jpg">'),
        ("beta(gamma_value, alpha_value)", "beta(alpha_value, gamma_value)"),
    ],
)
def test_a_line_that_grew_or_was_turned_round_is_alike(sent: str, line: str) -> None:
    matcher = RowMatcher(FilledLines(["def unrelated():", line]), [Row(sent)])
    assert matcher.alike_lines(0, 0.6, 3) == [1]


def test_what_is_only_removed_matches_equal_lines_alone() -> None:
    row = Row("total += values", is_written=False)
    matcher = RowMatcher(FilledLines(["total += value", "total += values"]), [row])
    assert (matcher.evidence[0] > 0).tolist() == [False, True]


def test_brackets_say_less_than_words() -> None:
    assert (
        weight_of("});") < weight_of("end") < weight_of("value = 1") < weight_of("load(path, mode)")
    )


@given(st.sampled_from(["", "  ", "\t", "    \t"]), st.integers(0, 20))
def test_a_line_comes_back_when_it_is_moved_out_and_in(indent: str, num: int) -> None:
    line = indent + "text"
    wide = moved(line, num)
    assert wide.endswith(line)
    if "\t" not in indent:
        assert columns(wide) == columns(line) + num
        assert moved(wide, -num) == line
