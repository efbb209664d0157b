"""Markers: lines of a snippet that stand for code of the original, not for themselves.

Two kinds. A *keep* marker ("// ... existing code ...") stands for lines that stay; a *removal*
directive ("# remove parse_header") names something that goes. A line is judged in three steps:
peel the comment syntax off, look whether dots surround the words, match the words against phrases.
The fewer dots there are and the weaker the comment sign, the stricter the phrase must be.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

MarkerKind = Literal["keep", "remove"]

_DOTS = r"(?:\.{3,}|…+)"
_NOUN = (
    r"(?:code|file|contents?|content|lines?|body|implementations?|imports?|methods?|functions?|"
    r"class(?:es)?|variants?|match(?:es)?|cases?|arms?|logics?|fields?|propert(?:y|ies)|props|"
    r"attributes?|members?|tests?|parameters?|params|arguments?|args|options?|settings?|config"
    r"(?:uration)?s?|definitions?|declarations?|statements?|types?|interfaces?|structs?|enums?|"
    r"constants?|variables?|state|hooks?|handlers?|routes?|styles?|rules?|selectors?|markup|"
    r"elements?|components?|columns?|tables?|quer(?:y|ies)|keys|entries|items?|values?|sections?|"
    r"text|docs?|docstrings?|comments?|documentation|exports?|helpers?|blocks?|stuff|script|module)"
)
_REMAINS = (
    r"(?:(?:remains?|stays?|is|are|kept)\s+)?(?:exactly\s+)?"
    r"(?:(?:the\s+)?same(?:\s+as\s+(?:before|above|original))?|unchanged|as[\s-]is|intact|"
    r"as\s+before|unmodified|here|below|above|omitted|goes\s+here)"
)
_ADJECTIVE = r"(?:existing|unchanged|remaining|unmodified|original|previous|untouched)"

# Words that make a marker of a comment with no dots at all: nobody writes them about code.
_STRONG = re.compile(
    rf"(?:(?:keep|leave|preserve|insert)\s+)?(?:all\s+)?(?:the\s+|your\s+|other\s+)?"
    rf"(?:existing|unchanged|unmodified|remaining)\s+(?:code|implementation|file)"
    rf"(?:\s+{_REMAINS})?"
    rf"|(?:keep|leave)\s+(?:the\s+)?(?:rest|remainder|remaining)(?:\s+of\s+.{{1,40}})?"
    rf"(?:\s+{_REMAINS})?"
    rf"|(?:all\s+)?(?:the\s+)?(?:rest|remainder)\s+of\s+(?:the\s+|this\s+|your\s+)?"
    rf"(?:\w+\s+)?{_NOUN}(?:\s+{_REMAINS})?"
    rf"|(?:the\s+)?(?:code|implementation|file|rest)\s+(?:remains?|stays?|is)\s+(?:the\s+)?"
    rf"(?:same|unchanged|as[\s-]is)"
    rf"|(?:keep|leave)\s+(?:the\s+)?existing(?:\s+\w+)?\s*(?:{_REMAINS})?"
    rf"|unchanged|no\s+changes?(?:\s+(?:here|needed|below|above))?",
    re.IGNORECASE,
)
# Words that need dots in front ("// ... keep existing code").
_LEADING = re.compile(
    rf"{_STRONG.pattern}"
    rf"|(?:the\s+)?(?:rest|remainder)(?:\s+of\s+.{{1,60}})?(?:\s+{_REMAINS})?"
    rf"|(?:all\s+)?(?:the\s+)?(?:other\s+)?{_ADJECTIVE}\s+.{{1,60}}"
    rf"|(?:keep|leave)\s+.{{1,60}}"
    rf"|(?:all\s+)?(?:the\s+)?(?:other\s+)?(?:\w+\s+)?{_NOUN}(?:\s+{_REMAINS})?"
    rf"|existing|same|unchanged|snip|omitted|other\s+\w+",
    re.IGNORECASE,
)
# Words that need dots behind ("// existing code ..."): prose often trails off, so fewer pass.
_TRAILING = re.compile(
    rf"{_STRONG.pattern}"
    rf"|(?:the\s+)?rest(?:\s+of\s+(?:the\s+)?(?:\w+\s+)?{_NOUN})?"
    rf"|(?:keep\s+)?(?:all\s+)?(?:the\s+)?(?:other\s+)?{_ADJECTIVE}\s+(?:\w+\s+)?{_NOUN}"
    rf"|other\s+{_NOUN}",
    re.IGNORECASE,
)
# Words that need dots on both sides; almost anything with a telling word.
_ENCLOSED = re.compile(
    rf"{_LEADING.pattern}"
    rf"|(?=.*\b(?:existing|rest|remain\w*|unchanged|same|keep|kept|previous|other|omitted|"
    rf"snip(?:ped)?|unmodified|original|skip(?:ped)?|before|above|elided|truncated)\b).{{1,80}}",
    re.IGNORECASE,
)
# Without a comment sign dots on both sides and one of these words are asked for.
_BARE = re.compile(
    r"(?=.*\b(?:existing|rest|remain\w*|unchanged|same|keep|omitted|unmodified|snip)\b)"
    r"[\w\s,'()-]{3,80}",
    re.IGNORECASE,
)
_REMOVAL = re.compile(
    r"(?:remove|removed|delete|deleted|drop)(?:\s*:\s*|\s+)(?:the\s+|this\s+)?"
    rf"(?:entire\s+|whole\s+)?(?:(?:async\s+)?{_NOUN}\s+)?"
    rf"[`'\"]?(?P<name>[A-Za-z_$][\w$.:-]*)(?:\(\))?[`'\"]?(?:\s+{_NOUN})?\.?",
    re.IGNORECASE,
)

# Opening and closing sign; the longest openings first.
_BLOCK_COMMENTS: tuple[tuple[str, str], ...] = (
    ("{{!--", "--}}"),
    ("{/**", "*/}"),
    ("{/*", "*/}"),
    ("<!--", "-->"),
    ("--[[", "]]"),
    ("/**", "*/"),
    ("/*", "*/"),
    ("<%#", "%>"),
    ("<%--", "--%>"),
    ("{#", "#}"),
    ("{-", "-}"),
    ("(*", "*)"),
    ('"""', '"""'),
    ("'''", "'''"),
)
_LINE_COMMENT = re.compile(r"(?P<sign>/{2,}!?|#+|--+|%+|;+|'(?=\s[^']*$)|!|(?i:REM)\b)(?P<body>.*)")
_LIST_SIGN = re.compile(r"[*\-+]\s+(?P<body>.*)")
_PUNCTUATION = " \t()[]{}<>,;:.!-*=_~"
_INLINE = re.compile(
    rf"(?:(?<=[\s(\[{{,;])|^)(?:(?P<line>//|\#|--)\s*{_DOTS}\s*(?P<words>[^\"'`]*?)\s*{_DOTS}"
    rf"\s*(?=$|[,;)\]}}])"
    rf"|/\*\s*{_DOTS}\s*(?P<block>[^\"'`]*?)\s*{_DOTS}?\s*\*/)"
)
_FENCE_OPEN = re.compile(r"\s*(?P<ticks>`{3,}|~{3,})[\w+#./:{}=\" -]*\s*")
_MARKDOWN_SUFFIXES = (".md", ".mdx", ".markdown", ".mdown", ".rmd", ".qmd")
_MARKDOWN_NAMES = frozenset({"markdown", "md", "mdx"})


@dataclass(frozen=True, slots=True)
class Marker:
    """What a marker line says; `name` is the thing that a removal directive names."""

    kind: MarkerKind
    name: str | None = None


def parse_marker(line: str) -> Marker | None:
    """Read one line by itself, whatever the original says. A line that only holds text is None."""
    stripped = line.strip()
    if not stripped or len(stripped) > 160:
        return None
    for body, is_spaced in _comment_bodies(stripped):
        if _is_keep_body(body, is_spaced=is_spaced):
            return Marker("keep")
        removal = _REMOVAL.fullmatch(body.strip()) if is_spaced else None
        if removal:
            return Marker("remove", removal["name"].rstrip(".:-"))
    return Marker("keep") if _is_keep_without_comment(stripped) else None


class MarkerReader:
    """Reads markers in the light of one original: what already stands there is text."""

    def __init__(self, original_lines: Sequence[str]) -> None:
        self._texts = frozenset(line.strip() for line in original_lines)
        self._words: frozenset[str] | None = None
        self._original_lines = original_lines

    def read(self, line: str) -> Marker | None:
        """The marker that `line` is, or None for text."""
        marker = parse_marker(line)
        if marker is None or line.strip() in self._texts:
            return None
        if marker.kind == "remove" and not self._names_something(marker.name or ""):
            return None
        return marker

    def has_inline_marker(self, line: str) -> bool:
        """Whether `line` mixes code with a marker, as in `{ port: 1, // ... existing ... }`."""
        if line.strip() in self._texts or len(line) > 2000:
            return False
        for match in _INLINE.finditer(line):
            words = match["words"] if match["line"] else match["block"]
            if not words or _ENCLOSED.fullmatch(words.strip(_PUNCTUATION)):
                return match["line"] != "#" or bool(words)
        return False

    def _names_something(self, name: str) -> bool:
        if self._words is None:
            text = "\n".join(self._original_lines)
            self._words = frozenset(re.findall(r"[A-Za-z_$][\w$]*", text))
        parts = re.findall(r"[A-Za-z_$][\w$]*", name)
        return bool(parts) and parts[-1] in self._words


def is_marker(line: str, original_lines: Sequence[str] = ()) -> bool:
    """Whether `line` is a marker or removal directive. For many lines use a `MarkerReader`."""
    return MarkerReader(original_lines).read(line) is not None


def split_segments(update_lines: Sequence[str], original_lines: Sequence[str]) -> list[list[str]]:
    """Runs of snippet lines between markers; runs of blank lines alone are dropped.

    A line that mixes code with a marker is not a line of the result, so it cuts as well.
    """
    reader = MarkerReader(original_lines)
    segments: list[list[str]] = [[]]
    for line in update_lines:
        if reader.read(line) is not None or reader.has_inline_marker(line):
            segments.append([])
        else:
            segments[-1].append(line)
    return [segment for segment in segments if any(line.strip() for line in segment)]


def strip_fence(
    update_lines: Sequence[str], *, path: str | None = None, language: str | None = None
) -> list[str]:
    """The update without the one code fence around it; Markdown files keep theirs."""
    start, end = fence_span(update_lines, path=path, language=language)
    return list(update_lines[start:end])


def fence_span(
    update_lines: Sequence[str], *, path: str | None = None, language: str | None = None
) -> tuple[int, int]:
    """The lines `[start, end)` inside the one code fence around the update, or all of them."""
    whole = (0, len(update_lines))
    filled = [place for place, line in enumerate(update_lines) if line.strip()]
    if len(filled) < 2 or is_markdown(path=path, language=language):
        return whole
    first, last = filled[0], filled[-1]
    opening = _FENCE_OPEN.fullmatch(update_lines[first])
    closing = update_lines[last].strip()
    if opening is None or set(closing) != {opening["ticks"][0]}:
        return whole
    if len(closing) < len(opening["ticks"]):
        return whole
    return first + 1, last


def is_markdown(*, path: str | None = None, language: str | None = None) -> bool:
    """Whether code fences are part of the file itself."""
    if language is not None:
        return language.lower() in _MARKDOWN_NAMES
    return path is not None and path.lower().endswith(_MARKDOWN_SUFFIXES)


def _comment_bodies(stripped: str) -> list[tuple[str, bool]]:
    """Readings of a line as one comment: its text, and whether a space follows the sign."""
    bodies: list[tuple[str, bool]] = []
    for opening, closing in _BLOCK_COMMENTS:
        if stripped.startswith(opening) and stripped.endswith(closing):
            inner = stripped[len(opening) : len(stripped) - len(closing)]
            if len(stripped) >= len(opening) + len(closing) and closing not in inner:
                # A docstring of dots alone is a real docstring.
                is_text = opening in ('"""', "'''") and not re.search(r"\w", inner)
                bodies.append(("" if is_text else inner, True))
    line_comment = _LINE_COMMENT.fullmatch(stripped)
    if line_comment and not bodies:
        body = line_comment["body"]
        bodies.append((body, body[:1].isspace() or line_comment["sign"].startswith("//")))
    return bodies


def _is_keep_body(body: str, *, is_spaced: bool) -> bool:
    """Whether the text of a comment is a keep marker."""
    text = body.strip()
    match = re.fullmatch(rf"[(\[<]?(?P<head>{_DOTS})?(?P<words>.*?)(?P<tail>{_DOTS})?[)\]>]?", text)
    if match is None or not text:
        return False
    words = match["words"].strip(_PUNCTUATION)
    if not words:
        return bool(match["head"] or match["tail"]) and not match["words"].strip(" ()[]")
    if match["head"] and match["tail"]:
        return bool(_ENCLOSED.fullmatch(words))
    if match["head"]:
        return bool(_LEADING.fullmatch(words))
    if match["tail"]:
        return is_spaced and bool(_TRAILING.fullmatch(words))
    return is_spaced and bool(_STRONG.fullmatch(words))


def _is_keep_without_comment(stripped: str) -> bool:
    if stripped.strip("…") == "" or stripped == "UNCHANGED CODE":
        return True
    list_item = _LIST_SIGN.fullmatch(stripped)
    text = list_item["body"] if list_item else stripped
    match = re.fullmatch(rf"[(\[<]?{_DOTS}(?P<words>.+?){_DOTS}[)\]>]?", text)
    return match is not None and bool(_BARE.fullmatch(match["words"].strip()))
