"""An edit of a file, with the pieces of the snippet that shows it.

An edit replaces rows of the old file. Its pieces lie within the innermost block that is shown: rows
of the file, new lines, and gaps that a marker stands for.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from training.generated.small_edits import code
from training.generated.small_edits.code import Function, Parameter
from training.generated.small_edits.places import Block, Item, indent_of, is_comment


@dataclass(frozen=True, slots=True)
class Source:
    """A file with its blocks; `unit` is one level of indentation."""

    path: str
    language: str
    lines: list[str]
    blocks: list[Block]
    imports: list[Item]
    unit: str

    @property
    def quote(self) -> str:
        """The quote that strings of the file have most."""
        text = "\n".join(self.lines)
        return "'" if text.count("'") > text.count('"') else '"'


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows `[start, end)` of the old file that the snippet shows."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Gap:
    """Rows `[start, end)` of the old file that a marker stands for."""

    start: int
    end: int
    role: str


@dataclass(frozen=True, slots=True)
class New:
    """Where the snippet shows the new lines."""


Piece = Rows | Gap | New


@dataclass(frozen=True, slots=True)
class Edit:
    """Rows `[start, end)` of a file become `new`; `pieces` cover `[low, high)` inside `around`.

    `opened` is a block whose header is among the pieces.
    """

    kind: str
    around: Block | None
    start: int
    end: int
    new: tuple[str, ...]
    pieces: tuple[Piece, ...]
    low: int
    high: int
    role: str
    opened: Block | None = None


MAX_CONTEXT_ROWS = 6
MAX_DOCSTRING_ROWS = 14
LEAVING = re.compile(
    r"^(?:return|raise|throw|break|continue|exit|goto|panic|yield|die|fail|error\(|os\.exit|redirect"
    r"|next)\b"
)
_TRIVIAL = re.compile(r"return(?: none| false| true| null)?|break|continue|pass|else|end", re.I)


def filled(template: str, indent: str, unit: str) -> tuple[str, ...]:
    """The lines of a template at an indentation."""
    return tuple(indent + line.replace("\t", unit) for line in template.split("\n"))


def body_indent(source: Source, block: Block) -> str:
    """The indentation of a block's items."""
    return indent_of(source.lines[block.items[0].start])


def is_telling(lines: Sequence[str], row: int, start: int, end: int) -> bool:
    """Whether a row says where it is: there is no other one like it in `[start, end)`."""
    text = lines[row].strip()
    is_trivial = (
        len(text) < 5
        or bool(_TRIVIAL.fullmatch(text.rstrip(";:{ ")))
        or not re.search(r"\w{2}", text)
    )
    return not is_trivial and [line.strip() for line in lines[start:end]].count(text) == 1


def inserted(
    kind: str,
    source: Source,
    block: Block,
    index: int,
    new: tuple[str, ...],
    rng: random.Random,
    *,
    role: str = "rest",
) -> Edit | None:
    """New lines behind the first `index` items of a block, with some of the items around them."""
    items, lines = block.items, source.lines
    at = items[index - 1].end if index else block.body
    if (index and is_comment(items[index - 1])) or (not index and not lines[block.body].strip()):
        return None
    if index == len(items) and at != block.end:
        return None
    before, after = _context(lines, block, index, at, rng)
    if before is None:
        return None
    pieces = (Rows(before, at), New(), Rows(at, after))
    return Edit(kind, block, at, at, new, pieces, before, after, role)


def _context(
    lines: list[str], block: Block, index: int, at: int, rng: random.Random
) -> tuple[int | None, int]:
    """From which to which row a snippet shows what is around row `at`; (None, 0) if unclear."""
    items = block.items
    if not index:
        num_before, num_after = 0, rng.choice((0, 0, 0, 0, 1))
    elif index == len(items):
        num_before, num_after = rng.choice((0, 0, 1, 1, 2)), 0
    else:
        num_before, num_after = rng.choice(((1, 0), (1, 0), (1, 1), (1, 1), (2, 1), (2, 0), (0, 1)))
        if not num_before and not lines[at].strip():
            num_before = 1
    before = items[max(index - num_before, 0)].start if num_before else at
    after = items[index + num_after - 1].end if num_after else at
    if at - before > MAX_CONTEXT_ROWS or after - at > MAX_CONTEXT_ROWS:
        if 0 < index < len(items):
            return None, 0
        return at, at
    is_inside = 0 < index < len(items)
    if is_inside:
        first_after = next((row for row in range(at, after) if lines[row].strip()), None)
        told = [row for row in (at - 1 if num_before else None, first_after) if row is not None]
        if not any(is_telling(lines, row, block.body, block.end) for row in told):
            return None, 0
    return before, after


def value_of(kind: str, source: Source, rng: random.Random) -> str:
    """A literal of the kind of a new name."""
    if kind == "num":
        return rng.choice(code.NUMBERS)
    if kind == "bool":
        is_true = rng.random() < 0.5
        return (
            ("True" if is_true else "False")
            if source.language == "python"
            else ("true" if is_true else "false")
        )
    quote = (
        source.quote if source.language in ("python", "php", "ruby", "lua", *code.SCRIPTS) else '"'
    )
    return quote + rng.choice(code.TEXTS) + quote


def new_name(
    source: Source, block: Block, rng: random.Random, kinds: Sequence[str] = ("num", "bool", "str")
) -> tuple[str, str] | None:
    """A name that a block does not have yet, and the kind of its value."""
    text = re.sub(r"[_\-]", "", "\n".join(source.lines[block.start : block.stop])).lower()
    free = [
        (name, kind)
        for name, kind in code.NEW_NAMES
        if kind in kinds and name.replace("_", "") not in text
    ]
    return rng.choice(free) if free else None


def code_values(
    source: Source,
    function: Function,
    parameter: Parameter | None,
    rng: random.Random,
    template: str = "",
) -> dict[str, str]:
    """What a template of a statement is filled with."""
    words = code.words_of(function.name).split()
    loggers = re.findall(r"^(\w*log(?:ger)?)\s*=", function.file_text, re.M | re.I)
    has_logging = "import logging" in function.file_text
    name = parameter.name if parameter else ""
    stem = PurePosixPath(source.path).stem
    return {
        "p": f"${name}" if source.language == "php" and not name.startswith("$") else name,
        "f": function.name,
        "n": "_".join(words),
        "v": (words[0] + "".join(word.capitalize() for word in words[1:])) if words else "",
        "q": source.quote,
        "l": loggers[0] if loggers else "logging" if has_logging else "logger",
        "tag": "TAG" if re.search(r"\bTAG\b", function.file_text) else f'"{stem}"',
        "msg": code.messages(function.name, template, rng),
    }


def usable_parameters(function: Function) -> list[tuple[Parameter, str]]:
    """The parameters that conditions are known for, with the kinds of their types."""
    kinds = [(one, code.kind_of(one, function.language)) for one in function.parameters]
    return [(one, kind) for one, kind in kinds if kind in code.conditions(function.language)]


def condition_of(
    function: Function, source: Source, rng: random.Random
) -> tuple[Parameter, str, str] | None:
    """A parameter, a condition under which it is wrong, and what to say then."""
    usable = [
        (one, kind)
        for one, kind in usable_parameters(function)
        if not one.default and not one.name.startswith("_")
    ]
    if not usable:
        return None
    parameter, kind = rng.choice(usable)
    condition, message = rng.choice(code.conditions(function.language)[kind])
    shown = f"${parameter.name}" if source.language == "php" else parameter.name
    return parameter, condition.format(p=shown), message.format(p=parameter.name)


def alike_label(above: str, labels: Sequence[str], word: str) -> str:
    """A new label with the beginning that all others have, such as `COLOR_`."""
    names = [re.sub(r"\W.*", "", label) for label in labels]
    common = ""
    for letters in zip(*names, strict=False):
        if len(set(letters)) > 1:
            break
        common += letters[0]
    ends = [
        place
        for place in range(1, min(len(common) + 1, len(above)))
        if common[place - 1] == "_" or (above[place - 1].islower() and above[place].isupper())
    ]
    prefix = above[: ends[-1]] if ends and len(names) > 1 else ""
    return prefix + code.styled(word, above[len(prefix) :] or above)
