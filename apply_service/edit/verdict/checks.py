"""The checks of a result: each a function of a `Comparison`, each with one finding code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise

from apply_service.edit.finding import Finding, Severity
from apply_service.edit.read.markers import parse_marker
from apply_service.edit.text.blank_lines import squeeze
from apply_service.edit.text.words import counted
from apply_service.edit.verdict.comparison import Comparison, shown
from apply_service.edit.verdict.loss_checks import LOSS_CHECKS, check_lost_names_used

# A piece of up to so many lines that is written over and over again at the end is a loop.
MAX_LOOP_PERIOD = 40
MIN_LOOP_COPIES = 4


def _check_nothing_changed(comparison: Comparison) -> Iterator[Finding]:
    num_new = len(comparison.new_lines)
    removed = [text for text in comparison.removed_counts if text in comparison.original_counts]
    if comparison.result != comparison.original or not (
        num_new or removed or comparison.removed_names
    ):
        return
    yield Finding(
        code="nothing_changed",
        severity="error",
        message="the result equals the original, but the update has "
        + (counted(num_new, "new line") if num_new else "a removal"),
        hint="send unchanged lines before and after each change",
        line=comparison.new_lines[0].number if num_new else None,
    )


def _check_marker_left(comparison: Comparison) -> Iterator[Finding]:
    """Check that the result has no marker; the original's marker lines are no more frequent.

    A marker among old lines that an edit names is text of the file.
    """
    known = Counter(map(str.strip, comparison.original))
    texts = frozenset(known)
    named = {text.strip() for segment in comparison.snippet.segments for text in segment.old or ()}
    for number, line in enumerate(comparison.result, start=1):
        text = line.strip()
        known[text] -= 1
        if known[text] >= 0 or text in named:
            continue
        is_repeated = text in texts
        marker = parse_marker(line) if is_repeated else comparison.reader.read(line)
        is_keep = comparison.is_listing(line) or comparison.reader.has_inline_marker(line)
        if marker is None and not is_keep:
            continue
        is_removal = marker is not None and marker.kind == "remove"
        yield Finding(
            code="marker_left",
            severity="warning" if is_removal else "error",
            message=f"line {number} of the result is a marker, not code: {shown(line)}",
            hint="the result may lack the code that the marker stands for; send a shorter update"
            " with more unchanged lines",
            line=number,
        )


def _check_snippet_line_missing(comparison: Comparison) -> Iterator[Finding]:
    """Every line of the update is in the result; new lines as often as they were sent."""
    sent: Counter[str] = Counter()
    for line in comparison.sent:
        text = squeeze(line.text)
        sent[text] += 1
        needed = sent[text]
        if text in comparison.original_counts:
            num_left = comparison.original_counts[text] - comparison.removed_counts[text]
            needed = max(1, num_left + 1) if line.role == "new" else 1
        if comparison.result_counts[text] < needed and not line.is_optional:
            yield Finding(
                code="snippet_line_missing",
                severity="warning",
                message=f"line {line.number} of the update is not in the result:"
                f" {shown(line.text)}",
                hint="send the line with unchanged lines around it, or leave it out if it is not"
                " code",
                line=line.number,
            )


def _check_removal_skipped(comparison: Comparison) -> Iterator[Finding]:
    """Lines that a diff or a search block takes away are gone as often as it says."""
    if not comparison.removed_counts:
        return
    last_numbers = {text: number for number, text in enumerate(comparison.result_texts, 1)}
    for text, num_removed in comparison.removed_counts.items():
        num_before = comparison.original_counts[text]
        num_left = max(0, num_before - num_removed) + comparison.added_counts[text]
        if num_before and comparison.result_counts[text] > num_left:
            yield Finding(
                code="removal_skipped",
                severity="warning",
                message=f"line {last_numbers[text]} of the result is still there, but the update"
                f" removes it: {shown(text)}",
                hint="if the line should go, remove it together with the lines around it",
                line=last_numbers[text],
            )


def _check_segment_broken(comparison: Comparison) -> Iterator[Finding]:
    """Lines that stand together in the update stand together in the result."""
    result_pairs = set(pairwise(filter(None, comparison.result_texts)))
    for run in comparison.runs:
        texts = [squeeze(line.text) for line in run]
        required = [place for place, line in enumerate(run) if not line.is_optional]
        for left, right in pairwise(required):
            chain = texts[left : right + 1]
            ends = (chain[0], chain[-1])
            is_present = all(comparison.result_counts[text] for text in ends)
            is_joined = ends in result_pairs or all(
                pair in result_pairs for pair in pairwise(chain)
            )
            if is_present and not is_joined:
                yield Finding(
                    code="segment_broken",
                    severity="warning",
                    message=f"other lines follow line {run[left].number} of the update in the"
                    f" result: {shown(run[left].text)}",
                    hint="put a marker between lines that are not neighbours in the file",
                    line=run[left].number,
                )


def _check_unknown_line(comparison: Comparison) -> Iterator[Finding]:
    unknown = [
        (place + 1, comparison.result[place])
        for place, text in enumerate(comparison.result_texts)
        if text
        and not comparison.original_counts[text]
        and not comparison.sent_counts[text]
        and comparison.reader.read(comparison.result[place]) is None
        and not comparison.is_listing(comparison.result[place])
    ]
    num_filled = len(comparison.result) - comparison.result_counts[""]
    severity: Severity = "error" if 2 * len(unknown) > num_filled else "warning"
    for number, line in unknown:
        if number - 1 in comparison.result_imports:
            yield Finding(
                code="import_added",
                severity=severity,
                message=f"line {number} of the result is an import that neither the original nor"
                f" the update has: {shown(line)}",
                hint="add the import to the update if the new code needs it",
                line=number,
            )
        else:
            yield Finding(
                code="unknown_line",
                severity=severity,
                message=f"line {number} of the result is neither in the original nor in the"
                f" update: {shown(line)}",
                hint="compare the line with the update; the model may have invented it",
                line=number,
            )


def _check_whitespace_changed(comparison: Comparison) -> Iterator[Finding]:
    sent_lines = {line.text for line in comparison.sent}
    exact = comparison.original_lines | sent_lines | {""}
    for place, line in enumerate(comparison.result):
        if line in exact:
            continue
        text = comparison.result_texts[place]
        if not text or comparison.original_counts[text] or comparison.sent_counts[text]:
            yield _whitespace_finding(place + 1, f"has other white space than its source: {text}")


def check_blank_lines(comparison: Comparison) -> Iterator[Finding]:
    """Between two lines stand as many blank lines as in the original or in the update.

    Where the two meet, both neighbours have a say: the line before and the line after. Where lines
    went, the blank lines on both sides of them may have come together.
    """
    original, snippet = comparison.original_gaps, comparison.sent_gaps
    for gap in comparison.changed_gaps:
        ends = (gap.left, gap.right)
        if gap.num_blank in original.between(*ends) or gap.num_blank in snippet.between(*ends):
            continue
        allowed = {*original.between(*ends), *snippet.between(*ends)}
        if not allowed:
            after, before = original.after(gap.left), original.before(gap.right)
            allowed = {*after, *before, *(above + below for above in after for below in before)}
            allowed.update(snippet.after(gap.left), snippet.before(gap.right))
        if allowed and gap.num_blank not in allowed:
            yield _whitespace_finding(
                gap.number,
                f"has {gap.num_blank} blank lines before it; the original or the update has"
                f" {' or '.join(map(str, sorted(allowed)))}",
            )


def _whitespace_finding(number: int, what: str) -> Finding:
    return Finding(
        code="whitespace_changed",
        severity="warning",
        message=f"line {number} of the result {what[:120]}",
        hint="check the white space of the result; indent the update as the file does",
        line=number,
    )


def _check_repeated_line(comparison: Comparison) -> Iterator[Finding]:
    """No line is in the result more often than in the original and the update together."""
    known = comparison.known_counts
    seen: Counter[str] = Counter()
    for number, line in enumerate(comparison.result, start=1):
        seen[line] += 1
        if line.strip() and 0 < known[line] < seen[line]:
            yield Finding(
                code="repeated_line",
                severity="warning",
                message=f"the result has line {number} more often than the original and the update"
                f" together: {shown(line)}",
                hint="remove the copy; the model may have written a block twice",
                line=number,
            )


def _check_misplaced_line(comparison: Comparison) -> Iterator[Finding]:
    """Lines of the original that the update does not name keep their order."""
    for hunk in comparison.hunks:
        for place in range(hunk.new_start, hunk.new_end):
            line, text = comparison.result[place], comparison.result_texts[place]
            if text and line in comparison.original_lines and not comparison.sent_counts[text]:
                yield Finding(
                    code="misplaced_line",
                    severity="warning",
                    message=f"line {place + 1} of the result has moved from its place in the"
                    f" original: {shown(text)}",
                    hint="check the order; if the line should move, send it in the update",
                    line=place + 1,
                )


def _check_loop(comparison: Comparison) -> Iterator[Finding]:
    """The result does not end in one piece again and again, unless its sources do."""
    lines = comparison.result
    for period in range(1, min(MAX_LOOP_PERIOD, len(lines) // MIN_LOOP_COPIES) + 1):
        start = len(lines) - period
        if not any(line.strip() for line in lines[start:]):
            continue
        while start > 0 and lines[start - 1] == lines[start - 1 + period]:
            start -= 1
        num_copies = (len(lines) - start) // period
        known = comparison.known_counts
        is_known = all(known[line] >= num_copies for line in lines[-period:] if line.strip())
        if num_copies >= MIN_LOOP_COPIES and not is_known:
            yield Finding(
                code="loop",
                severity="error",
                message=f"the result repeats the same {counted(period, 'line')} {num_copies} times"
                f" from line {start + 1} on: {shown(lines[start])}",
                hint="the model got stuck; try again with a smaller file or a stronger model",
                line=start + 1,
            )
            return


def _check_syntax(comparison: Comparison) -> Iterator[Finding]:
    """The result has no syntax error if the original has none.

    Where the original has some, the grammar does not know its language well enough (macros,
    templates) to judge the result by it.
    """
    before, after = comparison.tree, comparison.result_tree
    if before is None or after is None or before.error_lines or not comparison.result:
        return
    for place in after.error_lines:
        yield Finding(
            code="syntax_error",
            severity="warning",
            message=f"line {place + 1} of the result is not valid {after.language}; the original"
            f" has no syntax error: {shown(comparison.result[place])}",
            hint="look for a missing or extra bracket, tag or line before it",
            line=place + 1,
        )


def check_neighbours(comparison: Comparison) -> Iterator[Finding]:
    """Lines that follow each other do so in the original or the update, or the two meet there.

    This is what is left of a valid merge when one looks at two lines at a time; it repeats much of
    the other checks, so it is only asked when they found nothing. Removals join any two lines.
    """
    if comparison.removed_names or comparison.removed_counts:
        return
    original = comparison.original_gaps
    starts = {squeeze(run[0].text) for run in comparison.runs if run}
    ends = {squeeze(run[-1].text) for run in comparison.runs if run}
    for gap in comparison.changed_gaps:
        pair = (gap.left, gap.right)
        is_known = original.has(*pair) or pair in comparison.sent_pairs
        is_meeting = gap.right in starts or gap.left in ends
        if not (is_known or is_meeting):
            yield Finding(
                code="misplaced_line",
                severity="warning",
                message=f"line {gap.number} of the result and the line above it are not neighbours"
                f" in the original or the update: {shown(gap.right)}",
                hint="check the order; if the line should move, send it in the update",
                line=gap.number,
            )


CHECKS: tuple[Callable[[Comparison], Iterator[Finding]], ...] = (
    _check_nothing_changed,
    _check_marker_left,
    _check_snippet_line_missing,
    _check_removal_skipped,
    _check_segment_broken,
    _check_unknown_line,
    _check_whitespace_changed,
    check_blank_lines,
    _check_repeated_line,
    _check_misplaced_line,
    _check_loop,
    _check_syntax,
    *LOSS_CHECKS,
)
# What can be wrong even with a valid merge.
MERGE_CHECKS: tuple[Callable[[Comparison], Iterator[Finding]], ...] = (
    _check_marker_left,
    _check_syntax,
    check_lost_names_used,
)
