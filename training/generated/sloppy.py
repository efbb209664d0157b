"""Edits in the bad form of sloppy models, made from good ones: the same result, a worse update.

What an update shows of the file is sent with other quotes, with small mistakes, without its
comments or on another depth; new lines have remarks or signs; markers are only dots.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import msgspec

from apply_service.edit.read.instruction_comments import is_comment
from apply_service.edit.read.marker_phrases import usual_marker
from apply_service.edit.read.markers import parse_marker
from apply_service.edit.syntax.languages import language_of
from apply_service.edit.text.line_index import indent_of, indent_unit
from apply_service.edit.text.text_file import split_lines
from apply_service.evaluate.cases.case_file import Case

_REMARKS = (
    "<- added",
    "new",
    "added",
    "changed",
    "updated here",
    "NEW",
    "<-- this is new",
    "fixed",
)
_DOTS = ("...", "# ...", "// ...", "…", "... (unchanged)")
_WORD = re.compile(r"[A-Za-z]{4,}")
MIN_CONTEXT = 3
MAX_TYPOS = 2

_Change = Callable[["_Update", random.Random], "list[str] | None"]


class _Update:
    """The lines of an update, and which of them only say where it belongs (`is_known`)."""

    def __init__(self, case: Case) -> None:
        self.original, _ = split_lines(case.original)
        self.lines, _ = split_lines(case.update)
        self.language = language_of(case.path, case.language, self.original)
        texts = _kept_texts(case)
        self.is_marker = [parse_marker(line) is not None for line in self.lines]
        self.is_known = [
            line.strip() in texts and not is_marker
            for line, is_marker in zip(self.lines, self.is_marker, strict=True)
        ]
        self.known = [number for number, is_known in enumerate(self.is_known) if is_known]
        self.new = [
            number
            for number, line in enumerate(self.lines)
            if line.strip() and not self.is_known[number] and not self.is_marker[number]
        ]


def _kept_texts(case: Case) -> set[str]:
    """Lines that the file has before and after, as often: what was not sent as new."""
    before, after = (
        Counter(line.strip() for line in split_lines(text)[0] if line.strip())
        for text in (case.original, case.expected)
    )
    return {text for text, num in before.items() if after[text] == num}


def sloppy_cases(cases: Sequence[Case], limit: int, seed: int = 2) -> Iterator[Case]:
    """At most `limit` cases, each made from another one in one of the ways of `CHANGES`."""
    rng = random.Random(seed)
    num_made = 0
    names = list(CHANGES)
    for number, case in enumerate(rng.sample(cases, len(cases))):
        if num_made == limit:
            return
        if case.must_refuse or not case.original.strip():
            continue
        name = names[number % len(names)]
        update = _Update(case)
        lines = CHANGES[name](update, rng) if any(update.is_marker) else None
        if lines is None or lines == update.lines:
            continue
        num_made += 1
        yield msgspec.structs.replace(
            case, id=f"sloppy-{case.id}", update="\n".join(lines) + "\n", style=f"sloppy {name}"
        )


def _other_quotes(update: _Update, rng: random.Random) -> list[str] | None:
    """Lines of the file with other quotes, where they have one kind."""
    lines = list(update.lines)
    for number in update.known:
        line = lines[number]
        if '"' in line and "'" not in line:
            lines[number] = line.replace('"', "'")
        elif "'" in line and '"' not in line and line.count("'") % 2 == 0:
            lines[number] = line.replace("'", '"')
    return lines


def _other_unit(update: _Update, rng: random.Random) -> list[str] | None:
    """Indented by two spaces where the file has four, by four where it has two."""
    unit = indent_unit(update.original)
    if unit == "    ":
        return [_with_unit(line, 4, 2) for line in update.lines]
    if unit == "  ":
        return [_with_unit(line, 2, 4) for line in update.lines]
    return None


def _with_unit(line: str, old: int, new: int) -> str:
    indent = indent_of(line)
    steps, rest = divmod(len(indent), old)
    return " " * (steps * new + rest) + line[len(indent) :]


def _at_left(update: _Update, rng: random.Random) -> list[str] | None:
    """Every line moved to the left by the least indentation of what is no marker."""
    code = [
        line
        for line, is_marker in zip(update.lines, update.is_marker, strict=True)
        if line.strip() and not is_marker
    ]
    least = min((len(indent_of(line)) for line in code), default=0)
    if not least:
        return None
    return [line[least:] if not line[:least].strip() else line.lstrip() for line in update.lines]


def _without_comments(update: _Update, rng: random.Random) -> list[str] | None:
    """Without the comments that the file has between two lines that are sent."""
    known = set(update.known)
    return [
        line
        for number, line in enumerate(update.lines)
        if not (
            number in known and number - 1 in known and number + 1 in known and is_comment(line)
        )
    ]


def _with_remarks(update: _Update, rng: random.Random) -> list[str] | None:
    """New lines, at most four, end with a remark to the reader."""
    mark = usual_marker(update.language).partition(" ")[0]
    lines = list(update.lines)
    plain = [number for number in update.new if not is_comment(lines[number])]
    if update.language in ("json", "html", "markdown", "css") or not plain:
        return None
    for number in sorted(rng.sample(plain, min(len(plain), rng.randint(1, 4)))):
        lines[number] = f"{lines[number].rstrip()} {mark} {rng.choice(_REMARKS)}"
    return lines


def _with_signs(update: _Update, rng: random.Random) -> list[str] | None:
    """New lines begin with a plus sign; the rest is as it was, or one space to the right."""
    space = rng.choice(("", " "))
    new = set(update.new)
    if not new:
        return None
    return [
        f"+{line}" if number in new else f"{space}{line}" if line.strip() else line
        for number, line in enumerate(update.lines)
    ]


def _with_numbers(update: _Update, rng: random.Random) -> list[str] | None:
    """Numbers of lines in front of each line."""
    first = rng.randint(1, 90)
    form = rng.choice(("{} | {}", "{}: {}", "{}\t{}", "{:>4} {}"))
    return [form.format(first + number, line) for number, line in enumerate(update.lines)]


def _in_prose(update: _Update, rng: random.Random) -> list[str] | None:
    """Between fences, with a sentence before."""
    return [
        *rng.choice(([], ["Here is the updated code:", ""], ["I changed this:"])),
        f"```{update.language or ''}",
        *update.lines,
        "```",
    ]


def _with_dots(update: _Update, rng: random.Random) -> list[str] | None:
    """Markers are only dots."""
    dots = rng.choice(_DOTS)
    return [
        indent_of(line) + dots if is_marker and "remove" not in line.lower() else line
        for line, is_marker in zip(update.lines, update.is_marker, strict=True)
    ]


def _with_mistakes(update: _Update, rng: random.Random) -> list[str] | None:
    """One or two lines of the file have a word with a letter too few or too many."""
    lines = list(update.lines)
    long = [number for number in update.known if _WORD.search(lines[number])]
    if len(long) < MIN_CONTEXT:
        return None
    for number in rng.sample(long, rng.randint(1, MAX_TYPOS)):
        word = rng.choice(list(_WORD.finditer(lines[number])))
        place = rng.randint(word.start() + 1, word.end() - 1)
        letter = lines[number][place]
        changed = rng.choice(("", letter * 2))
        lines[number] = lines[number][:place] + changed + lines[number][place + 1 :]
    return lines


def _with_forgotten_line(update: _Update, rng: random.Random) -> list[str] | None:
    """A line of the file between two others is left out; it was not meant to go."""
    inner = [
        number
        for number in update.known
        if update.is_known[number - 1 : number + 2] == [True] * 3
        and _WORD.search(update.lines[number])
    ]
    if len(update.known) < MIN_CONTEXT or not inner:
        return None
    left_out = rng.choice(inner)
    return [line for number, line in enumerate(update.lines) if number != left_out]


def _without_last_marker(update: _Update, rng: random.Random) -> list[str] | None:
    """Without the first or the last line, where that is a marker."""
    ends = [place for place in (0, len(update.lines) - 1) if update.is_marker[place]]
    if not ends or sum(update.is_marker) < 2:
        return None
    left_out = rng.choice(ends)
    return [line for number, line in enumerate(update.lines) if number != left_out]


CHANGES: dict[str, _Change] = {
    "quotes": _other_quotes,
    "unit": _other_unit,
    "left": _at_left,
    "comments": _without_comments,
    "remarks": _with_remarks,
    "signs": _with_signs,
    "numbers": _with_numbers,
    "prose": _in_prose,
    "dots": _with_dots,
    "mistakes": _with_mistakes,
    "forgotten": _with_forgotten_line,
    "marker": _without_last_marker,
}
