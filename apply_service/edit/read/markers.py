"""Markers: lines of a snippet that stand for code of the original, not for themselves.

There are two kinds. A *keep* marker ("// ... existing code ...") stands for lines that stay; a
*removal* directive ("# remove parse_header") names something that goes. A line is judged in three
steps: remove the comment syntax, check for dots around the words, match the words against phrases.
The fewer dots there are and the weaker the comment sign, the stricter the phrase must be. In a lazy
update any words between dots are a keep marker too, a *listing* ("# ... fixtures and TestA ...").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from apply_service.edit.read.inline_markers import find_inline_marker
from apply_service.edit.read.marker_phrases import (
    BARE,
    ENCLOSED,
    LEADING,
    LISTING,
    NOUN,
    STRONG,
    TRAILING,
)
from apply_service.edit.text.definition_names import known_names
from apply_service.edit.text.words import IDENTIFIER

MarkerKind = Literal["keep", "remove"]

MAX_MARKER_LENGTH = 160
MAX_LISTING_LENGTH = 400
# Words that a marker may begin with although they are no comment sign.
_WORD_SIGNS = ("REM", "rem", "Rem", "UNCHANGED")

_REMOVAL_NAME = r"[A-Za-z_$][\w$.:-]*[!?]?"
_IS_REMOVED = (
    r"\s++(?:is\s++|was\s++|has\s++been\s++)?(?:removed|deleted)(?:\s++here|\s++entirely)?\.?"
)
_REMOVAL = re.compile(
    r"(?:remove|removed|delete|deleted|drop|dropped)(?:\s*:\s*|\s++)(?:the\s++|this\s++)?"
    rf"(?:entire\s++|whole\s++|old\s++)?(?:(?:async\s++)?{NOUN}\s++)?"
    rf"[`'\"]?(?P<name>{_REMOVAL_NAME})(?:\(\))?[`'\"]?(?:\s++{NOUN})?\.?"
    r"|(?:remove|delete|drop)\s++(?:the\s++)?[`'\"]?(?P<selector>[.#&@][\w-][\w .#:>&@-]{0,60}?)"
    rf"[`'\"]?(?:\s++{NOUN})?\.?"
    rf"|(?:the\s++)?{NOUN}\s++[`'\"]?(?P<gone>{_REMOVAL_NAME})(?:\(\))?[`'\"]?{_IS_REMOVED}"
    rf"|(?:the\s++)?[`'\"]?(?P<lost>{_REMOVAL_NAME})(?:\(\)[`'\"]?|[`'\"]?\s++{NOUN}){_IS_REMOVED}",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(r"\{\{\s*edit_\d+\s*\}\}")
_DOCSTRING_SIGNS = ('"""', "'''")
# Opening and closing sign by the first character; the longest openings first.
_BLOCK_COMMENTS: Mapping[str, tuple[tuple[str, str], ...]] = MappingProxyType(
    {
        "{": (("{{!--", "--}}"), ("{/**", "*/}"), ("{/*", "*/}"), ("{#", "#}"), ("{-", "-}")),
        "<": (("<!--", "-->"), ("<%#", "%>"), ("<%--", "--%>")),
        "-": (("--[[", "]]"),),
        "/": (("/**", "*/"), ("/*", "*/")),
        "(": (("(*", "*)"),),
        '"': (('"""', '"""'),),
        "'": (("'''", "'''"),),
    }
)
_LINE_COMMENT = re.compile(
    r"(?P<sign>/{2,}+!?|#++|--++|%++|;++|'(?=\s[^']*$)|!|(?i:REM)\b)(?P<body>.*)"
)
_LIST_SIGN = re.compile(r"[*\-+]\s+(?P<body>.*)")
_PUNCTUATION = " \t()[]{}<>,;:.!-*=_~"


@dataclass(frozen=True, slots=True)
class Marker:
    """The meaning of a marker line; `names` are the definitions that a removal directive names."""

    kind: MarkerKind
    names: tuple[str, ...] = ()


def parse_marker(line: str) -> Marker | None:
    """Read one line by itself, without regard to the original.

    None for a line that is text.
    """
    stripped = line.strip()
    if not stripped or len(stripped) > MAX_MARKER_LENGTH:
        return None
    if stripped[0].isalnum() and not stripped.startswith(_WORD_SIGNS):
        return None
    for body, is_spaced in comment_bodies(stripped):
        if _is_keep_body(body, is_spaced=is_spaced):
            return Marker("keep")
        removal = _REMOVAL.fullmatch(body.strip()) if is_spaced else None
        if removal:
            name = next(filter(None, removal.groups()))
            return Marker("remove", (name.rstrip(".:- "),))
    return Marker("keep") if _is_keep_without_comment(stripped) else None


class MarkerReader:
    """Reads markers with the original in view: a line that the original has is text."""

    def __init__(self, original_lines: Sequence[str]) -> None:
        self._texts = frozenset(line.strip() for line in original_lines)
        self._names: frozenset[str] | None = None
        self._original_lines = original_lines
        self._markers: dict[str, Marker | None] = {}

    def read(self, line: str) -> Marker | None:
        """The marker that `line` is, or None for text."""
        stripped = line.strip()
        if stripped not in self._markers:
            self._markers[stripped] = self._read(stripped)
        return self._markers[stripped]

    def is_listing(self, line: str) -> bool:
        """True if `line` is a listing that the original does not have as text."""
        return line.strip() not in self._texts and is_listing(line)

    def has_inline_marker(self, line: str) -> bool:
        """True if `line` mixes code with a marker, as in `{ port: 1, // ... existing ... }`."""
        return line.strip() not in self._texts and find_inline_marker(line) is not None

    def _read(self, stripped: str) -> Marker | None:
        marker = parse_marker(stripped)
        if marker is None or stripped in self._texts:
            return None
        if not all(map(self._names_something, marker.names)):
            return None
        return marker

    def _names_something(self, name: str) -> bool:
        """True if the original defines, binds or imports a name in a directive."""
        if name[0] in ".#&@":
            return any(_begins_with(text, name) for text in self._texts)
        if self._names is None:
            self._names = frozenset(known_names(self._original_lines))
        parts = IDENTIFIER.findall(name)
        return bool(parts) and parts[-1] in self._names


def is_marker(line: str, original_lines: Sequence[str] = ()) -> bool:
    """True if `line` is a marker or removal directive.

    For many lines use a `MarkerReader`.
    """
    return MarkerReader(original_lines).read(line) is not None


def is_listing(line: str) -> bool:
    """True if `line` is a comment with dots at both ends, with any words between them.

    A comment saying that something is gone is not a listing.
    """
    stripped = line.strip()
    if len(stripped) > MAX_LISTING_LENGTH or stripped.startswith(_DOCSTRING_SIGNS):
        return False
    if "..." not in stripped and "…" not in stripped:
        return False
    texts = [body.strip() for body, _ in comment_bodies(stripped)]
    return any(_is_dotted(text) and LISTING.fullmatch(text) for text in texts)


def split_segments(update_lines: Sequence[str], original_lines: Sequence[str]) -> list[list[str]]:
    """Runs of snippet lines between markers; runs of blank lines alone are dropped.

    A line that mixes code with a marker is not a line of the result, so it cuts as well.
    """
    reader = MarkerReader(original_lines)
    segments: list[list[str]] = [[]]
    for line in update_lines:
        if reader.read(line) or reader.is_listing(line) or reader.has_inline_marker(line):
            segments.append([])
        else:
            segments[-1].append(line)
    return [segment for segment in segments if any(line.strip() for line in segment)]


def _begins_with(text: str, name: str) -> bool:
    """True if `text` begins with the whole words of `name`."""
    return text.startswith(name) and not re.match(r"[\w-]", text[len(name) :])


def comment_bodies(stripped: str) -> list[tuple[str, bool]]:
    """Texts of a line read as one comment, each with whether a space follows the sign."""
    bodies: list[tuple[str, bool]] = []
    for opening, closing in _BLOCK_COMMENTS.get(stripped[:1], ()):
        if stripped.startswith(opening) and stripped.endswith(closing):
            inner = stripped[len(opening) : len(stripped) - len(closing)]
            if len(stripped) >= len(opening) + len(closing) and closing not in inner:
                # A docstring of dots alone is a real docstring.
                is_text = opening in _DOCSTRING_SIGNS and not re.search(r"\w", inner)
                bodies.append(("" if is_text else inner, True))
    line_comment = _LINE_COMMENT.fullmatch(stripped)
    if line_comment and not bodies:
        body = line_comment["body"]
        bodies.append((body, body[:1].isspace() or line_comment["sign"].startswith("//")))
    return bodies


def _is_dotted(text: str) -> bool:
    """True if a text, perhaps in brackets, ends with dots; quicker to test than the pattern."""
    return text.rstrip(")]>").endswith(("...", "…"))


def _is_keep_body(body: str, *, is_spaced: bool) -> bool:
    """True if the text of a comment is a keep marker."""
    text = body.strip()
    if _PLACEHOLDER.fullmatch(text):
        return True
    has_head, inner, has_tail = _between_dots(text)
    words = inner.strip(_PUNCTUATION)
    if not words:
        return (has_head or has_tail) and not inner.strip(" ()[]")
    if has_head and has_tail:
        return bool(ENCLOSED.fullmatch(words))
    if has_head:
        return bool(LEADING.fullmatch(words))
    if has_tail:
        return is_spaced and bool(TRAILING.fullmatch(words))
    return is_spaced and bool(STRONG.fullmatch(words))


def _is_keep_without_comment(stripped: str) -> bool:
    if stripped.strip("…") == "" or stripped == "UNCHANGED CODE":
        return True
    if _PLACEHOLDER.fullmatch(stripped):
        return True
    if "..." not in stripped and "…" not in stripped:
        return False
    list_item = _LIST_SIGN.fullmatch(stripped)
    text = list_item["body"] if list_item else stripped
    has_head, inner, has_tail = _between_dots(text)
    return has_head and has_tail and bool(BARE.fullmatch(inner.strip()))


def _between_dots(text: str) -> tuple[bool, str, bool]:
    """Whether dots stand before the words of a text, the words, and whether dots stand behind.

    A bracket around all of it is no word.
    """
    inner = text[1:] if text.startswith(("(", "[", "<")) else text
    words = _without_dots(inner, str.lstrip)
    core = words[:-1] if words.endswith((")", "]", ">")) else words
    left = _without_dots(core, str.rstrip)
    return len(words) < len(inner), left, len(left) < len(core)


def _without_dots(text: str, strip: Callable[[str, str], str]) -> str:
    """A text without three dots or more, or signs of an ellipsis, at one end."""
    rest = strip(text, ".")
    num_dots = len(text) - len(rest)
    return rest if num_dots >= 3 else text if num_dots else strip(text, "…")
