"""Makes a piece of a file parse by guessing the lines before and after the piece.

A fragment may be methods without their class, the end of one function and the next one whole, or
a definition whose body is cut off. Each `Frame` is one guess; the parser tells which fits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from apply_service.edit.syntax.frame_words import FRAME_WORDS, KEYWORD_FRAMES, FrameWords
from apply_service.edit.text.brackets import CLOSER_OF, OPENER_OF

MAX_FRAMED_LINES = 2000
MAX_UNCLOSED = 40

# Strings and comments, so that brackets in them do not count; an apostrophe pairs on one line.
_OPAQUE = (
    r"//[^\n]*|/\*.*?(?:\*/|\Z)|(?<!\\)\"(?:\\.|[^\"\\\n])*+\""
    r"|(?<!\\)`(?:\\.|[^`\\])*+`"
    r"|'(?:\\.|[^'\\\n]){0,200}?'"
)
_OPAQUE_HASH = (
    r"#[^\n]*|\"\"\".*?(?:\"\"\"|\Z)|'''.*?(?:'''|\Z)|(?<!\\)\"(?:\\.|[^\"\\\n])*+\""
    r"|(?<!\\)'(?:\\.|[^'\\\n])*+'"
)
_BRACKETS = {
    is_hash: re.compile(rf"(?P<opaque>{opaque})|(?P<bracket>[()\[\]{{}}])", re.DOTALL)
    for is_hash, opaque in ((False, _OPAQUE), (True, _OPAQUE_HASH))
}
_HASH_LANGUAGES = frozenset({"python", "ruby", "bash", "yaml", "toml", "lua"})
_PYTHON_CLAUSES: Mapping[str, str] = {
    "elif": "if _:",
    "else": "if _:",
    "except": "try:",
    "finally": "try:",
    "case": "match _:",
}


@dataclass(frozen=True, slots=True)
class Frame:
    """Lines to put before and after a fragment."""

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unbalanced:
    """Brackets without a partner, in the order of the text, and a comment left open."""

    closers: str
    openers: str
    is_in_comment: bool

    @property
    def tail(self) -> tuple[str, ...]:
        """The lines that close everything."""
        brackets = "".join(CLOSER_OF[opener] for opener in reversed(self.openers))
        comment = ("*/",) if self.is_in_comment else ()
        return (*comment, brackets) if brackets else comment


def dedent(lines: Sequence[str]) -> list[str]:
    """Remove the white space that all filled lines have in common."""
    filled = [line for line in lines if line.strip()]
    if not filled:
        return list(lines)
    low, high = min(filled), max(filled)
    width = len(low) - len(low.lstrip(" \t"))
    common = 0
    while common < width and high[common : common + 1] == low[common]:
        common += 1
    return [line[common:] if line.strip() else "" for line in lines]


def frames(lines: Sequence[str], language: str) -> Iterator[Frame]:
    """Guessed frames for dedented `lines`, the likeliest first."""
    if language == "python":
        yield from _python_frames(lines)
        return
    words = FRAME_WORDS.get(language)
    if words is None:
        yield Frame()
    if language in KEYWORD_FRAMES and len(lines) <= MAX_FRAMED_LINES:
        opening, closing = KEYWORD_FRAMES[language]
        for before, after in product(opening, closing):
            yield Frame(before, after)
    if words is not None:
        preamble = () if any("<?" in line for line in lines) else words.preamble
        for head in _comment_heads(lines) if words.has_comments else ((),):
            yield Frame((*preamble, *head))
            if len(lines) <= MAX_FRAMED_LINES:
                unbalanced = _unbalanced([*head, *lines], language)
                for frame in _bracket_frames(words, unbalanced):
                    yield Frame((*preamble, *frame.before, *head), frame.after)


def _comment_heads(lines: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Openings of a comment to try before a fragment.

    A fragment whose first line looks like a line of a doc comment is surely inside one.
    """
    first = next((line.strip() for line in lines if line.strip()), "")
    if first == "*" or first.startswith(("* ", "*/")):
        return (("/*",),)
    text = "\n".join(lines)
    end, start = text.find("*/"), text.find("/*")
    return (("/*",), ()) if end >= 0 and not 0 <= start < end else ((),)


def _unbalanced(lines: Sequence[str], language: str) -> Unbalanced:
    """The parts of a fragment that have no partner in it."""
    closers: list[str] = []
    openers: list[str] = []
    is_in_comment = False
    for match in _BRACKETS[language in _HASH_LANGUAGES].finditer("\n".join(lines)):
        bracket = match["bracket"]
        if bracket is None:
            opaque = match["opaque"]
            is_in_comment = opaque.startswith("/*") and not opaque.endswith("*/")
        elif bracket in CLOSER_OF:
            openers.append(bracket)
        elif openers and openers[-1] == OPENER_OF[bracket]:
            openers.pop()
        else:
            closers.append(bracket)
    return Unbalanced(
        "".join(closers[:MAX_UNCLOSED]), "".join(openers[:MAX_UNCLOSED]), is_in_comment
    )


def _bracket_frames(words: FrameWords, unbalanced: Unbalanced) -> Iterator[Frame]:
    """Open what the fragment closes, then close what it leaves open.

    The contexts of the language take the place of the outermost bracket that is opened.
    """
    tail = unbalanced.tail
    if not unbalanced.closers:
        if tail:
            yield Frame((), tail)
        for context in words.contexts:
            closing = tuple(CLOSER_OF[header[-1]] for header in reversed(context))
            yield Frame(context, (*tail, *closing))
        return
    outermost_first = unbalanced.closers[::-1]
    for context in words.contexts:
        yield Frame(tuple(_openings(words, context, outermost_first)), tail)
    for context in words.contexts:
        # The class around a method whose end is in the fragment is itself still open.
        openings = _openings(words, context, "}" + outermost_first)
        yield Frame(tuple(openings), (*tail, "}"))


def _openings(words: FrameWords, context: tuple[str, ...], closers: str) -> list[str]:
    """One line for each closing bracket, the outermost first."""
    lines: list[str] = []
    for depth, closer in enumerate(closers):
        if closer == ")":
            lines.append("_(")
        elif closer == "]":
            lines.append("_[")
        elif depth > 0 and closers[depth - 1] != "}":
            lines.append(words.argument)
        elif depth < len(context):
            lines.append(context[depth])
        elif depth == 1 and len(context) == 1:
            lines.append(words.member)
        else:
            lines.append(words.block)
    return lines


def _python_frames(lines: Sequence[str]) -> Iterator[Frame]:
    """Headers for deeper first lines, bodies for headers at the end, partners of clauses."""
    filled = [line for line in lines if line.strip()]
    if not filled:
        yield Frame()
        return
    before = _python_headers(filled)
    yield Frame(before)
    if len(lines) > MAX_FRAMED_LINES:
        return
    first_word = re.match(r"\s*(\w*)", filled[0])
    clause = _PYTHON_CLAUSES.get(first_word[1]) if first_word else None
    heads: list[tuple[str, ...]] = [before]
    if clause is not None:
        margin = filled[0][: len(filled[0]) - len(filled[0].lstrip())]
        body = () if clause.startswith("match") else (f"{margin} pass",)
        heads.insert(0, (*before, margin + clause, *body))
    unbalanced = _unbalanced(lines, "python")
    if unbalanced.closers:
        heads.append((*before, *_python_openings(unbalanced.closers)))
    if "\n".join(lines).count('"""') % 2:
        heads.append((*before, '"""'))
    closing = "".join(CLOSER_OF[opener] for opener in reversed(unbalanced.openers))
    last = filled[-1]
    margin = last[: len(last) - len(last.lstrip())]
    tails: list[tuple[str, ...]] = [(), (f"{margin}    pass",), (f"{margin}def _(): pass",)]
    if closing:
        tails += [(closing,), (f"{closing}:", f"{margin}    pass")]
    tails += [(f'{margin}"""',), (f"{margin}'''",)]
    for head, tail in product(heads, tails):
        yield Frame(head, tail)


def _python_openings(closers: str) -> list[str]:
    """A header for each bracket that the fragment closes: mostly a signature that ends there."""
    outermost_first = [OPENER_OF[closer] for closer in reversed(closers)]
    return [f"def _{opener}" if opener == "(" else f"_ = {opener}" for opener in outermost_first]


def _python_headers(filled: Sequence[str]) -> tuple[str, ...]:
    """One header for each indentation that a later line falls back to, below the first line's."""
    width = len(filled[0]) - len(filled[0].lstrip())
    levels: list[str] = []
    for line in filled:
        margin = line[: len(line) - len(line.lstrip())]
        if len(margin) < width:
            width = len(margin)
            levels.append(margin)
    levels.reverse()
    headers = [f"{margin}def _():" for margin in levels]
    if len(levels) > 1:
        headers[0] = f"{levels[0]}class _:"
    return tuple(headers)
