"""Phrases that make a line a marker; the fewer dots surround them, the stricter they must be."""

from __future__ import annotations

import re

DEFAULT_MARKER = "// ... existing code ..."
_HASH_LANGUAGES = frozenset({"python", "ruby", "bash", "yaml", "toml"})
_MARKERS = {
    "html": "<!-- ... existing code ... -->",
    "markdown": "<!-- ... existing code ... -->",
    "css": "/* ... existing code ... */",
    "sql": "-- ... existing code ...",
    "lua": "-- ... existing code ...",
}

DOTS = r"(?:\.{3,}|…+)"
NOUN = (
    r"(?:code|file|contents?|content|lines?|body|implementations?|imports?|methods?|functions?|"
    r"class(?:es)?|variants?|match(?:es)?|cases?|arms?|logics?|fields?|propert(?:y|ies)|props|"
    r"attributes?|members?|tests?|parameters?|params|arguments?|args|options?|settings?|config"
    r"(?:uration)?s?|definitions?|declarations?|statements?|types?|interfaces?|structs?|enums?|"
    r"constants?|variables?|state|hooks?|handlers?|routes?|styles?|rules?|selectors?|markup|"
    r"elements?|components?|columns?|tables?|quer(?:y|ies)|keys|entries|items?|values?|sections?|"
    r"text|docs?|docstrings?|comments?|documentation|exports?|helpers?|blocks?|stuff|script|module)"
)
_REMAINS = (
    r"(?:(?:remains?|stays?|is|are|kept)\s++)?(?:exactly\s++)?"
    r"(?:(?:the\s++)?same(?:\s++as\s++(?:before|above|original))?|unchanged|as[\s-]is|intact|"
    r"as\s++before|unmodified|here|below|above|omitted|goes\s++here)"
)
_ADJECTIVE = r"(?:existing|unchanged|remaining|unmodified|original|previous|untouched)"

# Words that make a marker of a comment with no dots at all: nobody writes them about code.
STRONG = re.compile(
    rf"(?:(?:keep|leave|preserve|insert)\s++)?(?:all\s++)?(?:the\s++|your\s++|other\s++)?"
    rf"(?:existing|unchanged|unmodified|remaining)\s++(?:code|implementation|file)"
    rf"(?:\s++{_REMAINS})?"
    rf"|(?:keep|leave)\s++(?:the\s++)?(?:rest|remainder|remaining)(?:\s++of\s++.{{1,40}})?"
    rf"(?:\s++{_REMAINS})?"
    rf"|(?:all\s++)?(?:the\s++)?(?:rest|remainder)\s++of\s++(?:the\s++|this\s++|your\s++)?"
    rf"(?:\w+\s++)?{NOUN}(?:\s++{_REMAINS})?"
    rf"|(?:the\s++)?(?:code|implementation|file|rest)\s++(?:remains?|stays?|is)\s++(?:the\s++)?"
    rf"(?:same|unchanged|as[\s-]is)"
    rf"|(?:keep|leave)\s++(?:the\s++)?existing(?:\s++\w+)?\s*(?:{_REMAINS})?"
    rf"|unchanged|no\s++changes?(?:\s++(?:here|needed|below|above))?",
    re.IGNORECASE,
)
# Words that need dots in front ("// ... keep existing code").
LEADING = re.compile(
    rf"{STRONG.pattern}"
    rf"|(?:the\s++)?(?:rest|remainder)(?:\s++of\s++.{{1,60}})?(?:\s++{_REMAINS})?"
    rf"|(?:all\s++)?(?:the\s++)?(?:other\s++)?{_ADJECTIVE}\s++.{{1,60}}"
    rf"|(?:keep|leave)\s++.{{1,60}}"
    rf"|(?:all\s++)?(?:the\s++)?(?:other\s++)?(?:\w+\s++)?{NOUN}(?:\s++{_REMAINS})?"
    rf"|existing|same|unchanged|snip|omitted|other\s++\w+",
    re.IGNORECASE,
)
# Words that need dots behind ("// existing code ..."): prose often trails off, so fewer pass.
TRAILING = re.compile(
    rf"{STRONG.pattern}"
    rf"|(?:the\s++)?rest(?:\s++of\s++(?:the\s++)?(?:\w+\s++)?{NOUN})?"
    rf"|(?:keep\s++)?(?:all\s++)?(?:the\s++)?(?:other\s++)?{_ADJECTIVE}\s++(?:\w+\s++)?{NOUN}"
    rf"|other\s++{NOUN}",
    re.IGNORECASE,
)
# Words that need dots on both sides; almost anything with a telling word.
ENCLOSED = re.compile(
    rf"{LEADING.pattern}"
    rf"|(?=.*\b(?:existing|rest|remain\w*|unchanged|same|keep|kept|previous|other|omitted|"
    rf"snip(?:ped)?|unmodified|original|skip(?:ped)?|before|above|elided|truncated)\b).{{1,80}}",
    re.IGNORECASE,
)
# Without a comment sign dots on both sides and one of these words are asked for.
BARE = re.compile(
    r"(?=.*\b(?:existing|rest|remain\w*|unchanged|same|keep|omitted|unmodified|snip)\b)"
    r"[\w\s,'()-]{3,80}",
    re.IGNORECASE,
)
# The text of a comment that begins and ends with dots, also in brackets; a comma after the first
# ones goes on with a series of numbers, a bracket closes "[...]". What is gone is not kept.
_GONE = r"(?:.*\b(?:removed|deleted|dropped|gone)\b|(?:remove|delete|drop)\s++\w+\W*$)"
LISTING = re.compile(
    rf"[(\[<]?(?:\.{{3,}}+|…++)(?!\s*+[\])>}},;:.…])(?!\s*+{_GONE})(?=.*\w)"
    r"[^\n]+(?:(?<=\.\.\.)|(?<=…))[)\]>]?",
    re.IGNORECASE,
)


def usual_marker(language: str | None) -> str:
    """The marker line of a language, in the comments that it has."""
    if language in _HASH_LANGUAGES:
        return "# ... existing code ..."
    return _MARKERS.get(language or "", DEFAULT_MARKER)
