"""Markers inside a line of code: `{ port: 1, // ... existing ... }`.

Such a line cannot stand in the result as it is. It is read as one of three things: the head of
the line and then a gap, the original line that it abbreviates with its items merged, or neither.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from apply_service.edit.read.marker_phrases import ENCLOSED, STRONG
from apply_service.edit.read.original_index import OriginalIndex
from apply_service.edit.text.brackets import CLOSER_OF, OPENER_OF
from apply_service.edit.text.work_budget import add_characters

MAX_LINE_LENGTH = 2000

# Short repeats, so that no run of dots or words is tried at each of its places.
_DOTS = r"(?:\.{3,6}|…{1,3})"
_WORDS = r"[^\"'`]{0,120}"
_PUNCTUATION = " \t()[]{}<>,;:.!-*=_~"
_INLINE = re.compile(
    rf"(?:(?<=[\s(\[{{,;])|^)(?:(?P<sign>//|\#|--)\s*+{_DOTS}(?P<words>{_WORDS}?){_DOTS}"
    rf"\s*+(?=$|[,;)\]}}])"
    rf"|/\*\s*+{_DOTS}(?P<block>{_WORDS}?)\*/"
    rf"|(?://|\#|--)\s*+{_DOTS}(?P<open>{_WORDS})$)"
)
_KEY = re.compile(r"\s*(?:\.\.\.)?[\"']?(?P<key>[\w$-]+)[\"']?\s*(?:[:=](?!=)|$)")


@dataclass(frozen=True, slots=True)
class InlineMarker:
    """The code before and after a marker of the same line."""

    head: str
    tail: str


def find_inline_marker(line: str) -> InlineMarker | None:
    """The first marker inside `line`, or None; a line that is all marker has none."""
    if ("..." not in line and "…" not in line) or len(line) > MAX_LINE_LENGTH:
        return None
    for match in _INLINE.finditer(line):
        if _is_keep(match):
            return InlineMarker(line[: match.start()].rstrip(), line[match.end() :].rstrip())
    return None


def merge_items(marker: InlineMarker, original: OriginalIndex) -> str | None:
    """The one line of the original that `marker` abbreviates, with its items merged, or None.

    The text up to the bracket around the marker, and the text from that bracket's end on, must
    stand in exactly one line of the original. Items are matched by text or key; a new item without
    a key is not placed, because it could also replace an old one.
    """
    opened = _innermost_open(marker.head)
    if opened is None:
        return None
    closed = _closing_place(marker.tail, CLOSER_OF[marker.head[opened]])
    if closed is None:
        return None
    prefix, suffix = marker.head[: opened + 1].lstrip(), marker.tail[closed:]
    found = [
        line
        for line in original.lines
        if len(line) <= MAX_LINE_LENGTH
        and line.lstrip().startswith(prefix)
        and line.rstrip().endswith(suffix)
    ]
    if len(found) != 1:
        return None
    start = found[0].index(prefix) + len(prefix)
    if _closing_place(found[0][start:], CLOSER_OF[prefix[-1]]) != (
        len(found[0].rstrip()) - len(suffix) - start
    ):
        return None
    end = len(found[0].rstrip()) - len(suffix)
    inner = _merged(
        _items(found[0][start:end]),
        [item for item in _items(marker.head[opened + 1 :]) if item.strip()],
        [item for item in _items(marker.tail[:closed]) if item.strip()],
    )
    indent = marker.head[: len(marker.head) - len(marker.head.lstrip())]
    if inner is None:
        return None
    add_characters(len(inner))
    return indent + prefix + inner + suffix


def _is_keep(match: re.Match[str]) -> bool:
    if match["open"] is not None:
        return STRONG.fullmatch(match["open"].strip(_PUNCTUATION)) is not None
    words = (match["words"] if match["sign"] else match["block"]).strip(" \t.…")
    if not words:
        return match["sign"] != "#"
    return ENCLOSED.fullmatch(words.strip(_PUNCTUATION)) is not None


def _merged(items: list[str], head: list[str], tail: list[str]) -> str | None:
    """The items of the original, with the items around the marker added."""
    has_last_comma = len(items) > 1 and not items[-1].strip()
    ending = items.pop() if has_last_comma else None
    if not any(item.strip() for item in items):
        return None
    border = 0
    for item in head:
        place = _find(items, item)
        if place is None and not _has_key(item):
            return None
        if place is None:
            items.insert(border, " " + item.strip())
            border += 1
        else:
            items[place] = _like(items[place], item)
            border = place + 1
    border = len(items)
    for item in reversed(tail):
        place = _find(items, item)
        if place is None and not _has_key(item):
            return None
        if place is None:
            items.insert(border, _like(items[border - 1], item))
        else:
            items[place] = _like(items[place], item)
            border = place
    if ending is not None:
        items.append(ending)
    return ",".join(items)


def _find(items: list[str], item: str) -> int | None:
    """The index of the item with the same text, else of the one with the same key."""
    texts = [text.strip() for text in items]
    if item.strip() in texts:
        return texts.index(item.strip())
    key = _KEY.match(item)
    if key is None:
        return None
    for place, text in enumerate(texts):
        other = _KEY.match(text)
        if other is not None and other["key"] == key["key"]:
            return place
    return None


def _has_key(item: str) -> bool:
    match = _KEY.match(item)
    return match is not None and match.end() < len(item.rstrip())


def _like(old: str, item: str) -> str:
    """`item` with the white space around `old`."""
    before = old[: len(old) - len(old.lstrip())]
    return before + item.strip() + old[len(old.rstrip()) :]


def _innermost_open(text: str) -> int | None:
    """The place of the last bracket that `text` opens and does not close."""
    opened: list[int] = []
    for place, character in _code(text):
        if character in CLOSER_OF:
            opened.append(place)
        elif opened and character == CLOSER_OF[text[opened[-1]]]:
            opened.pop()
    return opened[-1] if opened else None


def _closing_place(text: str, closer: str) -> int | None:
    """The place where `text` closes a bracket that it does not open."""
    depth = 0
    for place, character in _code(text):
        if character in CLOSER_OF:
            depth += 1
        elif character in OPENER_OF:
            if depth == 0:
                return place if character == closer else None
            depth -= 1
    return None


def _items(text: str) -> list[str]:
    """`text` cut at the commas outside brackets and strings."""
    depth, start = 0, 0
    items: list[str] = []
    for place, character in _code(text):
        if character in CLOSER_OF:
            depth += 1
        elif character in OPENER_OF:
            depth -= 1
        elif character == "," and depth == 0:
            items.append(text[start:place])
            start = place + 1
    return [*items, text[start:]]


def _code(text: str) -> list[tuple[int, str]]:
    """The characters outside strings, each with its place."""
    characters: list[tuple[int, str]] = []
    quote: str | None = None
    is_escaped = False
    for place, character in enumerate(text):
        if quote is None:
            quote = character if character in "\"'`" else None
            if quote is None:
                characters.append((place, character))
        elif is_escaped:
            is_escaped = False
        elif character == "\\":
            is_escaped = True
        elif character == quote:
            quote = None
    return characters
