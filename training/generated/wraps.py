"""Edits that put existing lines into a new block, or take them out of one; made from any file.

The update shows the new block's header and end, and a marker deeper (or less deep) than the lines
that it stands for: what such a marker means is the whole point.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from apply_service.edit.place.candidates.filled_lines import moved
from apply_service.edit.read.marker_phrases import usual_marker
from apply_service.edit.syntax.definitions import find_definitions
from apply_service.edit.syntax.languages import language_of
from apply_service.edit.syntax.syntax import parse
from apply_service.edit.text.block_bounds import columns
from apply_service.edit.text.brackets import BLOCK_OPENERS, CLOSERS_OR_END
from apply_service.edit.text.line_index import indent_of, indent_unit
from apply_service.edit.text.text_file import split_lines
from apply_service.evaluate.cases.case_file import Case

_Frames = tuple[tuple[list[str], list[str]], ...]
_PYTHON: _Frames = (
    (["try:"], ["except ValueError:", "{unit}return None"]),
    (["try:"], ["finally:", "{unit}self.close()"]),
    (["if enabled:"], []),
    (["with lock:"], []),
    (["for attempt in range(3):"], []),
)
_BRACED: _Frames = (
    (["try {"], ["}} catch (error) {{", "{unit}throw error;", "}}"]),
    (["if (enabled) {"], ["}}"]),
    (["while (isRunning()) {"], ["}}"]),
)
_GO: _Frames = ((["if enabled {"], ["}}"]), (["for i := 0; i < 3; i++ {"], ["}}"]))
_BRACED_LANGUAGES = frozenset(
    {"javascript", "typescript", "tsx", "java", "c", "cpp", "csharp", "php", "kotlin", "swift"}
)
MIN_LINES, MAX_LINES = 2, 14
MIN_DEPTH = 2


def wrapped_cases(cases: Sequence[Case], limit: int, seed: int = 1) -> Iterator[Case]:
    """At most `limit` edits of the originals of other cases, one a file."""
    rng = random.Random(seed)
    seen: set[str] = set()
    for case in rng.sample(cases, len(cases)):
        if len(seen) == limit:
            return
        if case.original in seen:
            continue
        made = _wrapped(case, rng)
        if made is not None:
            seen.add(case.original)
            yield made


def _wrapped(case: Case, rng: random.Random) -> Case | None:
    lines, _ = split_lines(case.original)
    language = language_of(case.path, case.language, lines)
    frames = (
        _PYTHON
        if language == "python"
        else _BRACED
        if language in _BRACED_LANGUAGES
        else _GO
        if language in ("go", "rust")
        else ()
    )
    inside = _inside_functions(lines, language)
    spans = [
        (start, end) for start, end in _spans(lines) if frames and inside[start] and inside[end - 1]
    ]
    if not spans:
        return None
    start, end = rng.choice(spans)
    heads, tails = rng.choice(frames)
    indent = indent_of(lines[start])
    unit = indent_unit(lines) or "    "
    head = [indent + line for line in heads]
    tail = [indent + line.format(unit=unit) for line in tails]
    num_columns = columns(unit)
    inner = [moved(line, num_columns) if line.strip() else line for line in lines[start:end]]
    marker = usual_marker(language)
    shown = [*head, indent + unit + marker, *tail]
    before, behind = _context(lines, start, -1, rng), _context(lines, end, 1, rng)
    outer = marker if rng.random() < 0.7 else indent + marker
    update = [outer, *before, *shown, *behind, marker]
    if not behind and not tail:
        return None
    new = [*lines[:start], *head, *inner, *tail, *lines[end:]]
    old = case.original.endswith("\n")
    return Case(
        id=f"wrap-{case.id}",
        path=case.path,
        language=case.language,
        original=case.original,
        update="\n".join(update) + "\n",
        expected="\n".join(new) + ("\n" if old else ""),
        style="generated wrap",
    )


def _inside_functions(lines: Sequence[str], language: str | None) -> list[bool]:
    """For each line whether it stands in the body of a function, and in no definition within."""
    tree = parse(lines, language)
    inside = [False] * len(lines)
    for one in tree.symbols if tree is not None else find_definitions(lines):
        for line in range(one.start, one.end):
            inside[line] = one.kind in ("function", "other") and line > one.header
    return inside


def _context(lines: Sequence[str], border: int, step: int, rng: random.Random) -> list[str]:
    """One to three lines beside a border, without a blank one at the far side."""
    number = rng.randint(1, 3)
    shown = lines[max(0, border - number) : border] if step < 0 else lines[border : border + number]
    context = list(shown)
    while context and not context[0 if step < 0 else -1].strip():
        context.pop(0 if step < 0 else -1)
    return context


def _spans(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Runs of statements of one block, whole with what is deeper, blank lines inside."""
    for start, line in enumerate(lines):
        depth = columns(line)
        if not line.strip() or depth < MIN_DEPTH or not _may_border(line):
            continue
        above = next((one for one in reversed(lines[:start]) if one.strip()), "")
        if columns(above) > depth or (
            columns(above) < depth and not above.rstrip().endswith(BLOCK_OPENERS)
        ):
            continue
        for end in range(start + MIN_LINES, min(start + MAX_LINES, len(lines))):
            if not lines[end].strip() or not lines[end - 1].strip():
                continue
            if any(one.strip() and columns(one) < depth for one in lines[start:end]):
                break
            is_whole = columns(lines[end]) <= depth and _may_border(lines[end])
            is_closer = columns(lines[end]) < depth
            if is_whole or is_closer:
                yield start, end


def _may_border(line: str) -> bool:
    """Whether a statement may begin with a line."""
    text = line.strip()
    words = ("else", "elif", "except", "finally", "catch", "case", "default", "@", ".", "&", "|")
    return not text.startswith((*CLOSERS_OR_END, *words, "#", "//", "*", "/*", '"', "'"))
