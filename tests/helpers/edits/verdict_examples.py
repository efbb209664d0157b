"""The examples of docs/verdicts.md and of `tests/cases`, as values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
DOCS = (ROOT / "docs" / "verdicts.md").read_text()
# Texts that look like a finding and must not get it: too many for a page that people read.
COUNTEREXAMPLES = (ROOT / "tests" / "cases" / "verdict_counterexamples.md").read_text()
# A fenced block with its info string, or the word that says what the next examples show.
_PIECE = re.compile(
    r"^```(?P<info>[^\n]*)\n(?P<body>.*?)^```$|^(?P<word>Triggers|Must not):",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Example:
    """One example: three texts, and the finding code that must (or must not) appear.

    `told` is the model's judgement of the result, if the result is the model's: "sure 0.4".
    """

    code: str
    triggers: bool
    original: list[str]
    update: list[str]
    result: list[str]
    is_stopped: bool = False
    told: tuple[str, float] | None = None


def lines_of(body: str) -> list[str]:
    return body.split("\n")[:-1]


def patched(lines: list[str], diff: list[str]) -> list[str]:
    """Apply one hunk without line numbers, whose old lines stand in one place only."""
    if not diff:
        return lines
    old = [line[1:] for line in diff if not line.startswith("+")]
    new = [line[1:] for line in diff if not line.startswith("-")]
    places = [at for at in range(len(lines)) if lines[at : at + len(old)] == old]
    assert len(places) == 1, (diff, places)
    return [*lines[: places[0]], *new, *lines[places[0] + len(old) :]]


def blocks(text: str) -> Iterator[tuple[str, list[str]]]:
    for match in _PIECE.finditer(text):
        yield (match["word"] or match["info"]), lines_of(match["body"] or "")


def read_examples() -> Iterator[Example]:
    intro, *sections = _sections(DOCS)
    shared = dict(blocks(intro))
    right = patched(
        shared["python original"],
        [" " + line for line in shared["python update"][1:3]]
        + ["-    return name", "+    return name.lower()"],
    )
    for section in [*sections, *_sections(COUNTEREXAMPLES)[1:]]:
        code = section[1 : section.index("`", 1)]
        own: dict[str, list[str]] = {}
        triggers = True
        for info, body in blocks(section):
            if info in ("Triggers", "Must not"):
                own, triggers = {}, info == "Triggers"
            elif info in ("python original", "python update"):
                own[info] = body
            else:
                texts = {**shared, **own}
                base = texts["python original"] if own else right
                result = patched(base, body) if info == "diff" else body
                yield Example(
                    code,
                    triggers,
                    texts["python original"],
                    texts["python update"],
                    result,
                    info == "python stopped",
                    _told(info),
                )


def _sections(page: str) -> list[str]:
    """The text before the first finding of a page, and the section of each finding."""
    return re.split(r"^### (?=`)", page, flags=re.MULTILINE)


def _told(info: str) -> tuple[str, float] | None:
    """The words behind "python answer" in the info string of a block."""
    if not info.startswith("python answer "):
        return None
    what, value = info.removeprefix("python answer ").split()
    return what, float(value)
