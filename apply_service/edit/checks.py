"""The checks of a result: each a function of a `Comparison`, each with one finding code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from apply_service.edit.alignment import Hunk
from apply_service.edit.blank_lines import gaps_of, squeeze
from apply_service.edit.comparison import Comparison, shown
from apply_service.edit.finding import Finding, Severity
from apply_service.edit.markers import parse_marker

# Losing more lines than this between two adjacent lines of the update is worth a look.
MAX_EXPLAINED_LOSS = 10


def _check_nothing_changed(comparison: Comparison) -> Iterator[Finding]:
    if comparison.result != comparison.original or not (
        comparison.new_lines or comparison.removed_names
    ):
        return
    number = comparison.new_lines[0][0] if comparison.new_lines else None
    asked = f"{len(comparison.new_lines)} new lines" if comparison.new_lines else "a removal"
    yield Finding(
        code="nothing_changed",
        severity="error",
        message=f"the result equals the original although the update has {asked}",
        hint="add unchanged lines around the new ones so that their place is clear",
        line=number,
    )


def _check_marker_left(comparison: Comparison) -> Iterator[Finding]:
    original_texts = Counter(line.strip() for line in comparison.original)
    seen: Counter[str] = Counter()
    for number, line in enumerate(comparison.result, start=1):
        text = line.strip()
        seen[text] += 1
        is_repeated = original_texts[text] and seen[text] > original_texts[text]
        marker = parse_marker(line) if is_repeated else comparison.reader.read(line)
        if marker is None and not comparison.reader.has_inline_marker(line):
            continue
        is_removal = marker is not None and marker.kind == "remove"
        yield Finding(
            code="marker_left",
            severity="warning" if is_removal else "error",
            message=f"line {number} of the result is a marker, not code: {shown(line)}",
            hint="the code it stands for may be missing; send a shorter update with more context",
            line=number,
        )


def _check_snippet_line_missing(comparison: Comparison) -> Iterator[Finding]:
    """Every line of the update is in the result; new lines as often as they were sent."""
    sent: Counter[str] = Counter()
    for number, line in comparison.snippet:
        text = squeeze(line)
        sent[text] += 1
        needed = 1 if text in comparison.original_counts else sent[text]
        if comparison.result_counts[text] < needed:
            yield Finding(
                code="snippet_line_missing",
                severity="warning",
                message=f"line {number} of the update is not in the result: {shown(line)}",
                hint="check whether the line was meant to be code; send it with more context",
                line=number,
            )


def _check_segment_broken(comparison: Comparison) -> Iterator[Finding]:
    """Lines that stand together in the update stand together in the result."""
    filled = [squeeze(line) for line in comparison.result if line.strip()]
    result_pairs = set(pairwise(filled))
    for segment in comparison.segments:
        for (number, left), (_, right) in pairwise(segment):
            pair = (squeeze(left), squeeze(right))
            is_present = all(comparison.result_counts[text] for text in pair)
            if is_present and pair not in result_pairs:
                yield Finding(
                    code="segment_broken",
                    severity="warning",
                    message=f"the result has other lines after line {number} of the update than"
                    f" the update itself: {shown(left)}",
                    hint="put a marker between lines that do not follow each other in the file",
                    line=number,
                )


def _check_unknown_line(comparison: Comparison) -> Iterator[Finding]:
    unknown = [
        (number, line)
        for number, line in enumerate(comparison.result, start=1)
        if line.strip()
        and not comparison.original_counts[squeeze(line)]
        and not comparison.snippet_counts[squeeze(line)]
        and comparison.reader.read(line) is None
    ]
    num_filled = sum(1 for line in comparison.result if line.strip())
    severity: Severity = "error" if 2 * len(unknown) > num_filled else "warning"
    for number, line in unknown:
        yield Finding(
            code="unknown_line",
            severity=severity,
            message=f"line {number} of the result is neither in the original nor in the update:"
            f" {shown(line)}",
            hint="compare the line with the update; the model may have made it up",
            line=number,
        )


def _check_whitespace_changed(comparison: Comparison) -> Iterator[Finding]:
    exact = comparison.original_lines | {"", *comparison.update}
    for number, line in enumerate(comparison.result, start=1):
        text = squeeze(line)
        is_known = comparison.original_counts[text] or comparison.snippet_counts[text]
        if line not in exact and (is_known or not text):
            yield _whitespace_finding(number, f"has other white space than in its source: {text}")


def _check_blank_lines(comparison: Comparison) -> Iterator[Finding]:
    """Between two lines stand as many blank lines as in the original or in the update.

    Where the two meet, both neighbours have a say: the line before and the line after. Where lines
    went, the blank lines on both sides of them may have come together.
    """
    original, snippet = comparison.original_gaps, comparison.snippet_gaps
    for gap in gaps_of(comparison.result):
        pair = (gap.left, gap.right)
        allowed = original.between[pair] | snippet.between[pair]
        if not allowed:
            after, before = original.after[gap.left], original.before[gap.right]
            allowed = after | before | {above + below for above in after for below in before}
            allowed |= snippet.after[gap.left] | snippet.before[gap.right]
        if allowed and gap.num_blank not in allowed:
            yield _whitespace_finding(
                gap.number,
                f"has {gap.num_blank} blank lines before it where the original or the update has"
                f" {' or '.join(map(str, sorted(allowed)))}",
            )


def _whitespace_finding(number: int, what: str) -> Finding:
    return Finding(
        code="whitespace_changed",
        severity="warning",
        message=f"line {number} of the result {what[:120]}",
        hint="indent the lines of the update as the file does, and check the result's indentation",
        line=number,
    )


def _check_repeated_line(comparison: Comparison) -> Iterator[Finding]:
    """No line is in the result more often than in the original and the update together."""
    known = Counter(comparison.original) + Counter(line for _, line in comparison.snippet)
    seen: Counter[str] = Counter()
    for number, line in enumerate(comparison.result, start=1):
        seen[line] += 1
        if line.strip() and 0 < known[line] < seen[line]:
            yield Finding(
                code="repeated_line",
                severity="warning",
                message=f"line {number} of the result is there more often than the original and"
                f" the update have it: {shown(line)}",
                hint="the model may have written a block twice; remove the copy",
                line=number,
            )


def _check_misplaced_line(comparison: Comparison) -> Iterator[Finding]:
    """Lines of the original that the update does not name keep their order."""
    for hunk in comparison.hunks:
        for place in range(hunk.new_start, hunk.new_end):
            line = comparison.result[place]
            text = squeeze(line)
            if text and line in comparison.original_lines and not comparison.snippet_counts[text]:
                yield Finding(
                    code="misplaced_line",
                    severity="warning",
                    message=f"line {place + 1} of the result stands in another place than in the"
                    f" original: {shown(text)}",
                    hint="lines that move have to be in the update; check the order",
                    line=place + 1,
                )


def _check_lines_lost(comparison: Comparison) -> Iterator[Finding]:
    """Lines of the original go only where the update replaces or removes something."""
    unexplained: list[tuple[int, int]] = []
    for hunk in comparison.hunks:
        lost = _lost_places(comparison, hunk)
        if lost and not _is_loss_explained(comparison, hunk, lost):
            unexplained.append((lost[0] + 1, len(lost)))
    num_filled = sum(1 for line in comparison.original if line.strip())
    num_lost = sum(count for _, count in unexplained)
    is_most = num_lost > MAX_EXPLAINED_LOSS and 2 * num_lost > num_filled
    for number, count in unexplained:
        yield Finding(
            code="lines_lost",
            severity="error" if is_most else "warning",
            message=f"{count} lines of the original are gone from its line {number} on, more than"
            f" the update accounts for, the first: {shown(comparison.original[number - 1])}",
            hint="if they should go, say so with the lines before and after them in the update",
            line=number,
        )


def _lost_places(comparison: Comparison, hunk: Hunk) -> list[int]:
    """Filled lines of the original that the hunk drops and that stand nowhere else."""
    return [
        place
        for place in range(hunk.old_start, hunk.old_end)
        if (text := squeeze(comparison.original[place]))
        and comparison.result_counts[text] < comparison.original_counts[text]
    ]


def _is_loss_explained(comparison: Comparison, hunk: Hunk, lost: Sequence[int]) -> bool:
    if any(
        name in comparison.original[place] for name in comparison.removed_names for place in lost
    ):
        return True
    inserted = [
        text for line in comparison.result[hunk.new_start : hunk.new_end] if (text := squeeze(line))
    ]
    before, after = comparison.neighbours(hunk)
    chain = [before, *inserted, after]
    if all(pair in comparison.snippet_pairs for pair in pairwise(chain)):
        return len(lost) <= max(MAX_EXPLAINED_LOSS, len(inserted))
    num_sent = sum(1 for text in inserted if comparison.snippet_counts[text])
    return len(lost) <= num_sent


def check_neighbours(comparison: Comparison) -> Iterator[Finding]:
    """Lines that follow each other do so in the original or the update, or the two meet there.

    This is what is left of a valid merge when one looks at two lines at a time; it repeats much of
    the other checks, so it is only asked when they found nothing.
    """
    original_pairs = comparison.original_pairs
    starts = {squeeze(segment[0][1]) for segment in comparison.segments if segment}
    ends = {squeeze(segment[-1][1]) for segment in comparison.segments if segment}
    for gap in gaps_of(comparison.result):
        pair = (gap.left, gap.right)
        is_known = pair in original_pairs or pair in comparison.snippet_pairs
        is_meeting = gap.right in starts or gap.left in ends
        if not (is_known or is_meeting or comparison.removed_names):
            yield Finding(
                code="misplaced_line",
                severity="warning",
                message=f"line {gap.number} of the result follows a line that it follows neither"
                f" in the original nor in the update: {shown(gap.right)}",
                hint="lines that move have to be in the update; check the order",
                line=gap.number,
            )


CHECKS: tuple[Callable[[Comparison], Iterator[Finding]], ...] = (
    _check_nothing_changed,
    _check_marker_left,
    _check_snippet_line_missing,
    _check_segment_broken,
    _check_unknown_line,
    _check_whitespace_changed,
    _check_blank_lines,
    _check_repeated_line,
    _check_misplaced_line,
    _check_lines_lost,
)
