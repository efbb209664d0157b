"""Generates edits of files with odd bytes, in every form, each with the only right results.

A line that is replaced keeps its own ending; an added one takes that of a line beside it. All other
bytes stay as they are.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

MARK = "\ufeff"
ODD_LINES = (
    *("", "", "", "   ", "\t", "\tindented = 1", "    \t mixed = 2", "form\x0cfeed = 3", "\x0c"),
    *("vertical\x0btab", "next\x85line", "separator\u2028inside\u2029too", "\ufeffinside"),
    *("snow \u2603 and \U0001f600", "trailing   ", "two spaces  ", "\x1b[31m\x7f"),
)
FORMS = (
    *("lazy", "lazy", "search", "search blank", "diff", "patch", "old_new", "line_range"),
    *("hashline", "whole"),
)


@dataclass(frozen=True, slots=True)
class ByteEdit:
    """One edit: the body of a request, and the results that change nothing else."""

    form: str
    kind: str
    body: dict[str, Any]
    original: str
    results: frozenset[str]

    def result_of(self, answer: dict[str, Any]) -> str:
        """The merged file of an answer as text."""
        merged = answer["merged"]
        if isinstance(merged, str):
            return merged
        return base64.b64decode(merged["base64"]).decode()


def byte_edits(*, count: int, seed: int) -> Iterator[ByteEdit]:
    """The edits of a seed."""
    for number in range(count):
        generator = random.Random(f"{seed} {number}")
        yield _edit(generator, FORMS[number % len(FORMS)])


def _edit(generator: random.Random, form: str) -> ByteEdit:
    style = generator.choice(["\n", "\r\n", "\r", "mixed", "mixed", "mixed"])
    lines = _lines(generator, has_cr=style != "\r")
    endings = [generator.choice(["\n", "\r\n"]) if style == "mixed" else style for _ in lines]
    if generator.random() < 0.3:
        endings[-1] = ""
    mark = MARK if generator.random() < 0.3 else ""
    if generator.random() < 0.03:
        lines[1] = "nul \x00 here"
    is_telling = [line.startswith("value_") for line in lines]
    inner = [place for place in range(1, len(lines) - 1) if all(is_telling[place - 1 : place + 2])]
    place = generator.choice(inner or [1])
    # Whether the end of a file goes with lines that are not sent is another question.
    if form not in ("lazy", "whole") and generator.random() < 0.3:
        place = generator.choice([0, len(lines) - 1])
    kind = generator.choice(["replace", "replace", "insert", "delete"])
    if kind == "insert" and place == len(lines) - 1:
        kind = "replace"
    new = [f"new_{generator.randrange(10**6)} = 1"]
    start, end = (place + 1, place + 1) if kind == "insert" else (place, place + 1)
    new = [] if kind == "delete" else new

    def joined(ending: str) -> str:
        texts = [*lines[:start], *new, *lines[end:]]
        ends = [*endings[:start], *[ending] * len(new), *endings[end:]]
        if texts and endings[-1] == "":
            ends[-1] = ""
        return mark + "".join(map(str.__add__, texts, ends))

    beside = {endings[place]} if kind == "replace" else {*endings[place : place + 2]} - {""}
    original = mark + "".join(map(str.__add__, lines, endings))
    update, update_format = _update(generator, form, lines, (start, end), new)
    sent: Any = original
    if generator.random() < 0.4:
        sent = {"base64": base64.b64encode(original.encode()).decode()}
    body = {"original": sent, "update": update, "path": "notes.txt", "use_model": "never"}
    if update_format is not None:
        body["format"] = update_format
    return ByteEdit(form, kind, body, original, frozenset(map(joined, beside or {"\n"})))


def _lines(generator: random.Random, *, has_cr: bool) -> list[str]:
    """Telling lines, with odd ones between them; the first and the last are telling."""
    odd = [*ODD_LINES, "lone\rcarriage\rreturn"] if has_cr else list(ODD_LINES)
    lines: list[str] = []
    for number in range(generator.randint(8, 30)):
        lines.append(f"value_{number}_{generator.randrange(1000)} = {number}")
        if generator.random() < 0.3:
            lines += generator.choices(odd, k=generator.randint(1, 3))
    lines += [f"value_{number}_end = {number}" for number in range(3)]
    return [*lines, f"value_last = {generator.randrange(1000)}"]


def _update(
    generator: random.Random,
    form: str,
    lines: Sequence[str],
    changed: tuple[int, int],
    new: Sequence[str],
) -> tuple[Any, str | None]:
    """The change of lines [start, end) into the new ones, in a form."""
    start, end = changed
    num_context = generator.randint(1, 3)
    top, bottom = max(start - num_context, 0), min(end + num_context, len(lines))
    if form == "lazy":  # a marker stands beside lines that say where they are
        while top and not lines[top].startswith("value_"):
            top -= 1
        while bottom < len(lines) and not lines[bottom - 1].startswith("value_"):
            bottom += 1
    old = list(lines[top:bottom])
    now = [*lines[top:start], *new, *lines[end:bottom]]
    newline = generator.choice(["\n", "\r\n"])
    if form == "old_new":
        edit = {"old_string": newline.join(old), "new_string": newline.join(now)}
        return [edit], form
    if form == "line_range":
        text = newline.join([*now, ""])
        edit = {"start_line": top + 1, "end_line": bottom, "new_string": text}
        return [edit], form
    if form == "hashline":
        edit = {"op": "replace", "pos": _name(lines, top), "end": _name(lines, bottom - 1)}
        return [{**edit, "lines": now}], form
    if form == "whole":
        return newline.join([*lines[:start], *new, *lines[end:], ""]), None
    sent = _text_lines(generator, form, lines, changed, new, (top, bottom))
    if form.startswith("search"):
        edges = [[""] * (generator.randint(0, 2) if "blank" in form else 0) for _ in range(2)]
        sent = ["<<<<<<< SEARCH", *edges[0], *old, *edges[1], "======="]
        sent += [*edges[0], *now, *edges[1], ">>>>>>> REPLACE"]
    return newline.join([*sent, ""]), None


def _text_lines(
    generator: random.Random,
    form: str,
    lines: Sequence[str],
    changed: tuple[int, int],
    new: Sequence[str],
    shown: tuple[int, int],
) -> list[str]:
    """The update as lazy lines, a diff or a patch."""
    (start, end), (top, bottom) = changed, shown
    if form == "lazy":
        marker = generator.choice(["# ... existing code ...", "// ... existing code ..."])
        above = [marker] if top else []
        below = [marker] if bottom < len(lines) else []
        return [*above, *lines[top:start], *new, *lines[end:bottom], *below]
    hunk = [f" {line}" for line in lines[top:start]]
    hunk += [f"-{line}" for line in lines[start:end]]
    hunk += [f"+{line}" for line in new]
    hunk += [f" {line}" for line in lines[end:bottom]]
    if form == "patch":
        return ["*** Begin Patch", "*** Update File: notes.txt", "@@", *hunk, "*** End Patch"]
    num_new = len(new) + (start - top) + (bottom - end)
    head = f"@@ -{top + 1},{bottom - top} +{top + 1},{num_new} @@"
    return ["--- a/notes.txt", "+++ b/notes.txt", head, *hunk]


def _name(lines: Sequence[str], place: int) -> str:
    """A line's name, as `POST /v1/hashlines` gives it."""
    from apply_service.edit.forms.line_edits import hashed_line

    return hashed_line(place + 1, lines[place]).partition("|")[0]


def shown_edit(edit: ByteEdit, result: str) -> str:
    """An edit that went wrong, for a person."""
    expected = "\n".join(map(repr, sorted(edit.results)))
    body = json.dumps(edit.body)
    return f"{edit.form} {edit.kind}\n{body}\nis       {result!r}\nexpected {expected}"
