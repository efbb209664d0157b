"""Cuts cases to windows around their hunks and turns them into the tokens that are served."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from apply_service.prompts.errors import PromptError
from apply_service.prompts.profile import Profile, PromptRequest
from snippets.definitions import definition_around
from snippets.hunks import EditHunk, find_hunks
from snippets.writer import GENERATOR_VERSION, write_snippet
from training.case_file import TrainingCase, document_lines
from training.example import Example

MAX_TOKENS = 700
MAX_LONG_TOKENS = 850
LONG_SHARE = 0.15
MIN_WINDOW_LINES = 4
_CHARACTERS_PER_TOKEN = 3.0
_DEFINITION_SHARE = 0.6
_OTHER_STYLES_KEPT = 0.4
_CONDENSED_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class ExampleWindow:
    """A part of a case: consecutive lines before and after, and an update written for them."""

    case_id: str
    original: list[str]
    update: list[str]
    expected: list[str]
    style: str


def cut_window(case: TrainingCase, *, max_tokens: int, rng: random.Random) -> ExampleWindow | None:
    """A window of about `max_tokens` tokens of prompt and answer around some of the hunks.

    It holds whole hunks only. None if no snippet makes the edit in the window clear.
    """
    original, expected = document_lines(case.original), document_lines(case.expected)
    hunks = find_hunks(original, expected)
    if len(hunks) > 1 and rng.random() < _CONDENSED_SHARE:
        original, expected = condense(original, expected, hunks, rng=rng)
        hunks = find_hunks(original, expected)
    first = rng.randrange(len(hunks))
    last = first
    max_characters = int(max_tokens * _CHARACTERS_PER_TOKEN)
    start, end = hunks[first].old_start, hunks[first].old_end
    while last + 1 < len(hunks) and rng.random() < 0.8:
        following = hunks[last + 1]
        if 2 * _num_characters(original[start : following.old_end]) > max_characters * 0.9:
            break
        last, end = last + 1, following.old_end
    floor = hunks[first - 1].old_end if first else 0
    ceiling = hunks[last + 1].old_start if last + 1 < len(hunks) else len(original)
    added = [line for h in hunks[first : last + 1] for line in expected[h.new_start : h.new_end]]
    room = max_characters - 3 * _num_characters(added) - 300
    span = definition_around(original, start, max(end, start + 1), case.language)
    is_fitting = span is not None and 2 * _num_characters(original[slice(*span)]) < room * 0.8
    if span is not None and is_fitting and rng.random() < _DEFINITION_SHARE:
        start, end = max(span[0], floor), max(min(span[1], ceiling), end)
    start, end = _grow(original, start, end, floor, ceiling, room // 2, rng)
    start, end = _snap(original, start, end, hunks[first], hunks[last])
    if end - start < MIN_WINDOW_LINES:
        return None
    shift_before = hunks[first].new_start - hunks[first].old_start
    shift_after = hunks[last].new_end - hunks[last].old_end
    old, new = original[start:end], expected[start + shift_before : end + shift_after]
    snippet = write_snippet(old, new, language=case.language, rng=rng)
    if snippet is None:
        return None
    return ExampleWindow(case.id, old, snippet.lines, new, snippet.style)


def _num_characters(lines: Sequence[str]) -> int:
    return sum(map(len, lines)) + len(lines)


def _grow(
    lines: Sequence[str],
    start: int,
    end: int,
    floor: int,
    ceiling: int,
    room: int,
    rng: random.Random,
) -> tuple[int, int]:
    """Add lines on both sides, unevenly, until `room` characters are used up."""
    room -= _num_characters(lines[start:end])
    share_above = rng.uniform(0.15, 0.85)
    while room > 0 and (start > floor or end < ceiling):
        is_above = rng.random() < share_above if start > floor and end < ceiling else start > floor
        added = lines[start - 1] if is_above else lines[end]
        room -= len(added) + 1
        if room < 0:
            break
        start, end = (start - 1, end) if is_above else (start, end + 1)
    return start, end


def _snap(
    lines: Sequence[str], start: int, end: int, first: EditHunk, last: EditHunk
) -> tuple[int, int]:
    """Move borders inwards to a blank line if one is near and leaves some context."""
    if start > 0:
        for border in range(start, min(start + 8, first.old_start - 3)):
            if not lines[border - 1].strip() and lines[border].strip():
                start = border
                break
    if end < len(lines):
        for border in range(end, max(end - 8, last.old_end + 3), -1):
            if not lines[border].strip() and lines[border - 1].strip():
                end = border
                break
    return start, end


def tokenise(window: ExampleWindow, profile: Profile) -> Example | None:
    """The window as the service would ask it; None if its text cannot be encoded."""
    request = PromptRequest(window.original, window.update, segments=())
    try:
        prompt = profile.build(request)
        answer = prompt.answer_token_ids(window.expected)
    except PromptError:
        return None
    return Example(window.case_id, window.style, prompt.token_ids, answer + prompt.end_token_ids)


def make_examples(
    cases: Iterable[TrainingCase],
    profile: Profile,
    *,
    per_case: int = 1,
    seed: int = 0,
    max_long_tokens: int = MAX_LONG_TOKENS,
    long_share: float = LONG_SHARE,
) -> Iterator[Example]:
    """Up to `per_case` different windows of every case, some of up to `max_long_tokens`."""
    for case in cases:
        seen: set[tuple[int, ...]] = set()
        for number in range(per_case):
            rng = random.Random(f"{GENERATOR_VERSION}:{seed}:{number}:{case.id}")
            is_long = rng.random() < long_share
            limit = max_long_tokens if is_long else MAX_TOKENS
            wanted = limit if is_long else int(rng.triangular(250, 760, 650))
            example = _example(case, profile, wanted, limit, rng)
            if example is None or example.prompt_token_ids in seen:
                continue
            is_rare = "definition" in example.style or "+" in example.style
            if is_rare or rng.random() < _OTHER_STYLES_KEPT:
                seen.add(example.prompt_token_ids)
                yield example


def _example(
    case: TrainingCase, profile: Profile, wanted: int, limit: int, rng: random.Random
) -> Example | None:
    """An example within `limit`; the window is made smaller once if it is too long."""
    for max_tokens in (wanted, int(wanted * 0.6)):
        window = cut_window(case, max_tokens=max_tokens, rng=rng)
        example = tokenise(window, profile) if window is not None else None
        if example is not None and len(example) <= limit:
            return example
    return None


_MIN_GAP = 10
_MIN_KEPT = 3
_MAX_KEPT = 7


def condense(
    original: Sequence[str],
    expected: Sequence[str],
    hunks: Sequence[EditHunk],
    *,
    rng: random.Random,
) -> tuple[list[str], list[str]]:
    """Both texts without the middle of every long stretch between two hunks.

    Cuts are made at blank lines where there are some near, so that what stays reads like code.
    """
    old: list[str] = []
    new: list[str] = []
    old_start = new_start = 0
    for hunk, following in zip(hunks, [*hunks[1:], None], strict=True):
        old += original[old_start : hunk.old_end]
        new += expected[new_start : hunk.new_end]
        old_start, new_start = hunk.old_end, hunk.new_end
        if following is None:
            break
        gap = original[hunk.old_end : following.old_start]
        kept_before, kept_after = _cuts(gap, rng)
        if kept_before + kept_after < len(gap):
            kept = gap[:kept_before]
            old += kept
            new += kept
            dropped = len(gap) - kept_after
            old_start, new_start = old_start + dropped, new_start + dropped
    return [*old, *original[old_start:]], [*new, *expected[new_start:]]


def _cuts(gap: Sequence[str], rng: random.Random) -> tuple[int, int]:
    """How many lines stay at both ends of a gap; all of them if it is short."""
    if len(gap) < _MIN_GAP:
        return len(gap), 0
    before = _to_blank(gap, rng.randint(_MIN_KEPT, _MAX_KEPT))
    after = _to_blank(gap[::-1], rng.randint(_MIN_KEPT, _MAX_KEPT))
    # One of the two blank lines is enough where the ends meet.
    if before < len(gap) and not gap[before].strip():
        before += 1
    return before, min(after, len(gap) - before)


def _to_blank(gap: Sequence[str], wanted: int) -> int:
    """The number of lines before the blank line nearest to `wanted`, or `wanted`."""
    blank = [n for n in range(_MIN_KEPT, min(2 * _MAX_KEPT, len(gap))) if not gap[n].strip()]
    return min(blank, key=lambda n: abs(n - wanted), default=min(wanted, len(gap)))
