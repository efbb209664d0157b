"""Finds names that an update changes.

Where a changed line is an old one but for one word, which is new to the file, while the update does
not show the old word any more, it renames. A line that defines, assigns or imports the name tells
nothing, nor does one in a new definition: new definitions resemble those beside them. A definition
of which hardly a line is old has no old name either.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set

from apply_service.edit.text.bindings import declared_names
from apply_service.edit.text.blank_lines import squeeze
from apply_service.edit.text.definition_names import MAX_LINE_LENGTH, bound_name, definition_name
from apply_service.edit.text.line_index import indent_of
from apply_service.edit.text.words import NAME, NAME_NUMBER_OR_SIGN

_DECLARATION = re.compile(
    r"\s*(?P<type>\w++)[\w<>\[\],.*&?: ]*?[ *&](?P<name>[^\W\d]\w*+)\s*+\([^;{}]*\)\s*"
)
_NO_TYPES = frozenset({"return", "await", "yield", "throw", "raise", "new", "else", "if", "while"})
_NO_KEYS = frozenset({"else", "try", "finally", "default", "do", "loop"})
MAX_NEW_LINES = 400
MAX_OLD_LINES = 2_000
# Pairs of lines that are compared in all, and tokens of one line.
MAX_COMPARED = 100_000
MAX_TOKENS = 80
MIN_SHARED_TOKENS = 4
# Of the lines that use the old name so many must be shown with the new one.
MIN_RENAMED_SHARE = 0.75
# Of the lines in a definition with the new name so many must be old ones.
MIN_KEPT_SHARE = 0.3


def find_renames(segments: Iterable[Sequence[str]], old_lines: Sequence[str]) -> Mapping[str, str]:
    """The old name for each new one that the segments of an update give.

    `old_lines` are stripped.
    """
    known = set(old_lines)
    old_words = {word for line in known for word in NAME.findall(line)}
    suspects = []
    shown: set[str] = set()
    shown_lines: set[str] = set()
    inside: dict[str, set[str]] = {}
    for texts in segments:
        shown_lines.update(map(squeeze, texts))
        shown.update(word for line in texts for word in NAME.findall(line))
        for line, definition in _with_new_definitions(texts, old_words):
            if definition is not None:
                inside.setdefault(definition, set()).add(line)
                continue
            new_words = [] if line in known else list(set(NAME.findall(line)) - old_words)
            if len(new_words) == 1 and not _binds(line, new_words[0]):
                suspects.append((NAME_NUMBER_OR_SIGN.findall(line), new_words[0]))
    renames = _compared(suspects[:MAX_NEW_LINES], old_lines, shown)
    return {
        name: former
        for name, former in _everywhere(renames, shown_lines, old_lines).items()
        if _is_kept(inside.get(name, ()), name, former, known)
    }


def _compared(
    suspects: Sequence[tuple[list[str], str]], old_lines: Sequence[str], shown: Set[str]
) -> dict[str, str]:
    """For each new name the word in the first old line that is equal otherwise.

    It is none of those `shown`, and each new name has another one.
    """
    if not suspects:
        return {}
    by_size: dict[int, list[list[str]]] = {}
    for line in dict.fromkeys(old_lines):
        tokens = NAME_NUMBER_OR_SIGN.findall(line[: MAX_TOKENS * 8])
        if MIN_SHARED_TOKENS <= len(tokens) <= MAX_TOKENS:
            by_size.setdefault(len(tokens), []).append(tokens)
    renames: dict[str, str] = {}
    taken = set(shown)
    num_compared = 0
    for new, name in suspects:
        for old in by_size.get(len(new), [])[:MAX_OLD_LINES]:
            num_compared += 1
            if num_compared > MAX_COMPARED:
                return {}
            former = _former(new, old, name)
            if former is not None and former not in taken and name not in renames:
                renames[name] = former
                taken.add(former)
    return renames


def _everywhere(
    renames: Mapping[str, str], new_lines: Collection[str], old_lines: Sequence[str]
) -> dict[str, str]:
    """The renames after which almost no line still uses the old name."""
    uses: dict[str, set[str]] = {former: set() for former in renames.values()}
    for line in set(old_lines) if uses else ():
        for former in uses.keys() & NAME.findall(line):
            if not _binds(line, former):
                uses[former].add(line)
    return {
        name: former
        for name, former in renames.items()
        if sum(squeeze(_replaced(line, former, name)) in new_lines for line in uses[former])
        >= MIN_RENAMED_SHARE * len(uses[former])
    }


def _is_kept(inside: Collection[str], name: str, former: str, known: Set[str]) -> bool:
    """Whether the lines in a definition with the new name are those of an old one."""
    num_kept = sum(_replaced(line, name, former) in known for line in inside)
    return num_kept >= MIN_KEPT_SHARE * len(inside)


def _binds(line: str, name: str) -> bool:
    """Whether a line defines, assigns, imports or passes on a name."""
    return bound_name(line) == name or name in declared_names(line)


def _replaced(line: str, word: str, other: str) -> str:
    return re.sub(rf"\b{re.escape(word)}\b", other, line)


def _with_new_definitions(
    texts: Sequence[str], old_words: Set[str]
) -> Iterator[tuple[str, str | None]]:
    """The stripped lines that do not begin a definition whose name the file lacks.

    With each line in such a definition comes its name.
    """
    depth, inside = 0, None
    filled = list(filter(str.strip, texts))
    for text, below in zip(filled, [*filled[1:], ""], strict=False):
        indent = len(indent_of(text))
        if inside is not None and indent <= depth:
            inside = None
        opens = len(indent_of(below)) > indent
        name = _defined(text, opens=opens) if inside is None else None
        if name is not None and name not in old_words:
            depth, inside = indent, name
        else:
            yield text.strip(), inside


def _defined(text: str, *, opens: bool) -> str | None:
    """The name that a line defines, also where the block begins on the next line.

    With `opens` deeper lines follow: then a key or an assignment is as good as a definition.
    """
    match = _DECLARATION.fullmatch(text[:MAX_LINE_LENGTH])
    if match is not None and match["type"] not in _NO_TYPES:
        return match["name"]
    name = bound_name(text) if opens else definition_name(text)
    return None if name in _NO_KEYS else name


def _former(new: Sequence[str], old: Sequence[str], name: str) -> str | None:
    """The word that stands in `old` wherever `new` has `name`, if all else is equal."""
    former = None
    for token, other in zip(new, old, strict=True):
        if token == name:
            if former not in (None, other):
                return None
            former = other
        elif token != other:
            return None
    return former if former is not None and NAME.fullmatch(former) else None
