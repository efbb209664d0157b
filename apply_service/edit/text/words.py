"""Patterns for words: one for each meaning, named by what it matches."""

from __future__ import annotations

import re

# A name of a variable, function or type, as nearly all languages write one.
IDENTIFIER_PATTERN = r"[A-Za-z_$][\w$]*"
IDENTIFIER = re.compile(IDENTIFIER_PATTERN)
# Letters, digits and underscores of any script.
WORD = re.compile(r"\w+")
# The same with `$`, as scripts have it, and with `-`, as style sheets have it.
DOLLAR_WORD = re.compile(r"[\w$]+")
DASHED_WORD = re.compile(r"[\w$-]+")
# Words of any script that no digit begins.
NAME = re.compile(r"[^\W\d]\w*")
# What a line begins with: a word with the sign of a directive or decorator, or one other sign.
FIRST_WORD_OR_SIGN = re.compile(r"[#@]?\w+|\W")


def begin_alike(left: str, right: str) -> bool:
    """True if two lines begin with the same word or sign; not if one is empty."""
    first, other = FIRST_WORD_OR_SIGN.match(left), FIRST_WORD_OR_SIGN.match(right)
    return first is not None and other is not None and first[0] == other[0]


def counted(number: int, noun: str) -> str:
    """A number of things as messages say it: "1 line", "2 lines"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def whole_name(name: str) -> re.Pattern[str]:
    """The pattern of `name` as a whole word, not as a part of a longer name."""
    return re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])")
