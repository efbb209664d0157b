"""Edits that add a definition much like one of the file, or that give one another name.

Agents write a test, a route or a fixture after the pattern of the last one. Then much of what they
send is in the file already, and yet it replaces nothing. With another name for a definition the
body mostly stays, and nothing else speaks of the old name: that replaces it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence

from apply_service.edit.read.instruction_comments import is_comment
from apply_service.edit.read.marker_phrases import usual_marker
from apply_service.edit.syntax.definitions import find_definitions
from apply_service.edit.syntax.languages import language_of
from apply_service.edit.syntax.symbol import Symbol
from apply_service.edit.syntax.syntax import parse
from apply_service.edit.text.text_file import split_lines
from apply_service.edit.text.words import whole_name
from apply_service.evaluate.cases.case_file import Case
from training.generated.definitions import (
    made_case,
    of_each_file,
    paragraphs,
    update_around,
    update_beside,
)
from training.merges.examples import fold_of

MAX_A_FILE = 3
# A new definition that nothing tells from a renamed one has less than this in common with it.
MAX_CLONE_SHARE = 0.35
MAX_RENAMED_CHANGES = 0.3
RENAMED_SHARE = 0.35
_TOKEN = re.compile(r"[A-Za-z_]\w{2,}|\d+")
_PIECE = re.compile(r"\b[a-z]{3,12}\b")
_QUOTED = re.compile(r"(?<=['\"])[^'\"]{3,}(?=['\"])")
_KEYWORDS_WORDS = (
    "and async await catch class const def elif else except export extends false finally for "
    "from func function import interface let new nil none not null package private protected "
    "public raise readonly return self static struct super switch this throw throws true try "
    "type use using var void while with yield describe test expect print"
)
_KEYWORDS = frozenset(_KEYWORDS_WORDS.split())


def clone_cases(cases: Sequence[Case], limit: int, seed: int = 5) -> Iterator[Case]:
    """At most `limit` edits of the originals of other cases, few a file, in the same folds."""
    return of_each_file(cases, _made, limit, max_a_file=MAX_A_FILE, seed=seed)


def _made(case: Case, rng: random.Random) -> Iterator[Case]:
    lines, _ = split_lines(case.original)
    language = language_of(case.path, case.language, lines)
    tree = parse(lines, language)
    symbols = tree.symbols if tree is not None else find_definitions(lines)
    pieces = sorted({piece for line in lines for piece in _PIECE.findall(line)} - _KEYWORDS)
    found = [
        (*span, is_last)
        for is_last in (True, False)
        for span in paragraphs(lines, language, is_last=is_last)
    ]
    for number, (start, end, is_last) in enumerate(rng.sample(found, len(found))):
        symbol = next((one for one in symbols if start <= one.header < end), None)
        if symbol is None or len(pieces) < 4:
            continue
        made = _changed(lines, start, end, symbol, pieces, rng)
        if made is None:
            continue
        expected, first, last, kind = made
        marker = usual_marker(language)
        write = update_around if is_last else update_beside
        update = write(expected, first, last, marker, rng)
        one = made_case(case, f"{kind}-{number}", kind, lines, update, expected)
        if fold_of(one) == fold_of(case):
            yield one


def _changed(
    lines: Sequence[str],
    start: int,
    end: int,
    symbol: Symbol,
    pieces: Sequence[str],
    rng: random.Random,
) -> tuple[list[str], int, int, str] | None:
    """The new file, the span of what is new in it, and whether it is a clone or renamed."""
    name = symbol.name.rpartition(".")[2]
    pattern = whole_name(name)
    if not name.isidentifier() or not pattern.search(lines[symbol.header]):
        return None
    new_name = _another_name(name, pieces, rng)
    if any(new_name in line for line in lines):
        return None
    is_used = any(pattern.search(line) for line in [*lines[:start], *lines[end:]])
    is_renamed = not is_used and rng.random() < RENAMED_SHARE
    chance = rng.uniform(0, MAX_RENAMED_CHANGES) if is_renamed else rng.uniform(0.4, 1)
    new = []
    for place in range(start, end):
        line = pattern.sub(new_name, lines[place])
        is_said = is_comment(line) or place < symbol.header
        is_changed = not is_renamed if is_said else rng.random() < chance
        if place == symbol.header or not is_changed:
            new.append(line)
        elif place < symbol.header and not is_comment(line):
            # An attribute keeps its name.
            new.append(_QUOTED.sub(lambda text: _mutated(text.group(), pieces, rng), line))
        else:
            new.append(_mutated(line, pieces, rng))
    body = range(symbol.header + 1, end)
    telling = [place for place in body if len(lines[place].strip()) > 3]
    same = sum(lines[place] == new[place - start] for place in telling)
    if is_renamed:
        return [*lines[:start], *new, *lines[end:]], start, end, "renamed"
    if not telling or (same > MAX_CLONE_SHARE * len(telling) and not is_used):
        return None
    gap = next((gap for gap in range(start) if lines[start - gap - 1].strip()), 0)
    first = end + gap
    expected = [*lines[:end], *[""] * gap, *new, *lines[end:]]
    return expected, first, first + len(new), "clone"


def _another_name(name: str, pieces: Sequence[str], rng: random.Random) -> str:
    """A name in the same style: with another last word, or one word more."""
    piece = rng.choice(pieces)
    if "_" in name.strip("_"):
        return name.rpartition("_")[0] + "_" + piece
    humps = re.findall(r"[A-Z][a-z0-9]*|^[a-z0-9_]+", name)
    if len(humps) > 1 and "".join(humps) == name:
        return "".join(humps[:-1]) + piece.capitalize()
    if name[0].isupper():
        return piece.capitalize() + (name if rng.random() < 0.5 else "")
    return piece if rng.random() < 0.7 else f"{name}_{piece}"


def _mutated(line: str, pieces: Sequence[str], rng: random.Random) -> str:
    """A line in which one word or number is another one."""
    tokens = [one for one in _TOKEN.finditer(line) if one.group().lower() not in _KEYWORDS]
    if not tokens:
        return line
    token = rng.choice(tokens)
    text = token.group()
    if text.isdigit():
        new = str(int(text) + rng.randint(1, 9))
    else:
        new = rng.choice(pieces)
        new = new.capitalize() if text[0].isupper() else new
    return line[: token.start()] + new + line[token.end() :]
