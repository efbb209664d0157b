"""Removes text around an update that is not part of the file: code fences and names of files."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from apply_service.edit.read.snippet_error import UnsupportedOperationError

_FENCE_OPEN = re.compile(r"\s*(?P<ticks>`{3,}|~{3,})(?P<info>[\w+#./:{}=\"\\, -]*)")
# What may stand outside fenced parts: the path of the file, as a heading perhaps, or a sentence.
_PATH_LINE = re.compile(r"[#*`\s]*[\w./\\@+-]*\w\.\w+[*`:\s]*")
_CODE_SIGN = re.compile(r"[{}();=<>\[\]]")
_MARKDOWN_SUFFIXES = (".md", ".mdx", ".markdown", ".mdown", ".rmd", ".qmd")
_MARKDOWN_NAMES = frozenset({"markdown", "md", "mdx"})
_DIFF_NAMES = frozenset({"diff", "patch"})


def fenced_parts(
    update_lines: Sequence[str],
    original_texts: Collection[str] = (),
    *,
    path: str | None = None,
    language: str | None = None,
) -> list[tuple[int, int]]:
    """The parts `[start, end)` of an update that fences surround; without fences all of it.

    `original_texts` are stripped lines of the original: a fence among them is text. In a
    Markdown file a fence is text too, unless it surrounds the whole update and is labelled as
    Markdown or as a diff.
    """
    parts = _separate_parts(update_lines)
    whole = [(0, len(update_lines))]
    if not parts:
        return whole
    opening = update_lines[parts[0][0] - 1]
    if not is_markdown(path=path, language=language):
        return parts
    label = (_info(opening).split() or [""])[0].lower()
    is_wrapped = label in _MARKDOWN_NAMES | _DIFF_NAMES and opening.strip() not in original_texts
    return parts if is_wrapped and len(parts) == 1 else whole


def is_markdown(*, path: str | None = None, language: str | None = None) -> bool:
    """True if code fences are part of the file itself."""
    if language is not None:
        return language.lower() in _MARKDOWN_NAMES
    return path is not None and path.lower().endswith(_MARKDOWN_SUFFIXES)


def is_fence(line: str) -> bool:
    """True if `line` opens or closes a code fence."""
    return line.lstrip()[:3] in ("```", "~~~") and _FENCE_OPEN.fullmatch(line) is not None


def is_path_line(line: str) -> bool:
    """True if `line` only names a file, in one of the ways that agents write paths."""
    return len(line) < 300 and " " not in line.strip("#*`: \t") and bool(_PATH_LINE.fullmatch(line))


def _is_sentence(line: str) -> bool:
    """True if `line` is a sentence to the reader of an update, such as "Here is the change:"."""
    return len(line) < 300 and is_sentence(line, ends=(":", ".", "!"), min_spaces=2)


def _separate_parts(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Fenced parts with paths and sentences between them; else the lines inside the outer fence."""
    filled = [place for place, line in enumerate(lines) if line.strip()]
    if not filled:
        return []
    fences = [place for place in filled if is_fence(lines[place])]
    if not fences:
        return []
    parts: list[tuple[int, int]] = []
    opened: int | None = None
    for place in filled:
        line = lines[place]
        if opened is not None:
            if is_fence(line) and _closes(lines[opened], line):
                parts.append((opened + 1, place))
                opened = None
        elif is_fence(line):
            opened = place
        elif not is_path_line(line) and not _is_sentence(line):
            break
    else:
        if opened is None and all(not _info(lines[end]) for _, end in parts):
            return parts
    start, end = _outer_span(lines)
    return [(start, end)] if (start, end) != (0, len(lines)) else []


def _outer_span(lines: Sequence[str]) -> tuple[int, int]:
    """The lines inside the one fence whose borders are the first and the last filled line."""
    filled = [place for place, line in enumerate(lines) if line.strip()]
    whole = (0, len(lines))
    if len(filled) < 2 or not is_fence(lines[filled[0]]):
        return whole
    first, last = filled[0], filled[-1]
    return (first + 1, last) if _closes(lines[first], lines[last]) else whole


def _closes(opening: str, line: str) -> bool:
    ticks = opening.strip()[0]
    length = len(opening.strip()) - len(opening.strip().lstrip(ticks))
    return set(line.strip()) == {ticks} and len(line.strip()) >= length


def _info(fence: str) -> str:
    match = _FENCE_OPEN.fullmatch(fence)
    return match["info"].strip() if match else ""


def is_same_path(name: str, path: str) -> bool:
    """True if one path is the end of the other: agents write them from any folder on the way."""
    pairs = zip(_parts(name)[::-1], _parts(path)[::-1], strict=False)
    return all(ours == theirs for ours, theirs in pairs)


def check_file_name(name: str, path: str | None, *, number: int) -> None:
    """Raise UnsupportedOperationError if line `number` of the update names another file."""
    if path is None or "." not in _parts(name)[-1] or is_same_path(name, path):
        return
    raise UnsupportedOperationError(
        f"line {number} of the update names the file {name}, but the request edits {path}; send"
        f" the original of {name}"
    )


def _parts(name: str) -> list[str]:
    """The folders and the name of a path, without the first folder that a diff makes up."""
    parts = [part for part in re.split(r"[/\\]", name.strip("`*\"'# :\t")) if part not in ("", ".")]
    return parts[1:] if len(parts) > 1 and parts[0] in ("a", "b") else parts or [""]


def is_sentence(line: str, *, ends: tuple[str, ...], min_spaces: int) -> bool:
    """True if a line reads as what a model says beside code."""
    text = line.rstrip()
    return (
        "A" <= text[:1] <= "Z"
        and text.endswith(ends)
        and sum(map(str.isspace, text[1:-1])) >= min_spaces
        and _CODE_SIGN.search(text) is None
    )
