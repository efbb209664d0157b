"""Every example of docs/verdicts.md gets the finding that it stands for, or does not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from apply_service.edit.merge import plan_merge
from apply_service.edit.snippet import read_snippet
from apply_service.edit.syntax import parse
from apply_service.edit.verdict import judge

ROOT = Path(__file__).parents[3]
DOCS = (ROOT / "docs" / "verdicts.md").read_text()
# One is a finding of a plan that the verdict puts in its own words, one would need a long example.
WITHOUT_EXAMPLE = {"place_guessed", "too_many_segments"}
# A fenced block with its info string, or the word that says what the next examples show.
_PIECE = re.compile(
    r"^```(?P<info>[^\n]*)\n(?P<body>.*?)^```$|^(?P<word>Triggers|Must not):",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Example:
    """One example: three texts, and the code that must (or must not) be found."""

    code: str
    triggers: bool
    original: list[str]
    update: list[str]
    result: list[str]
    is_stopped: bool = False


def lines_of(body: str) -> list[str]:
    return body.split("\n")[:-1]


def patched(lines: list[str], diff: list[str]) -> list[str]:
    """Apply one hunk without line numbers; its old lines stand in one place only."""
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
    intro, *sections = re.split(r"^### (?=`)", DOCS, flags=re.MULTILINE)
    shared = dict(blocks(intro))
    right = patched(
        shared["python original"],
        [" " + line for line in shared["python update"][1:3]]
        + ["-    return name", "+    return name.lower()"],
    )
    for section in sections:
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
                )


EXAMPLES = list(read_examples())


@pytest.mark.parametrize(
    "example", EXAMPLES, ids=lambda example: f"{example.code}-{example.triggers}"
)
def test_example(example: Example) -> None:
    snippet = read_snippet(example.update, example.original, language="python")
    tree = parse(example.original, "python")
    verdict = judge(
        example.original,
        snippet,
        example.result,
        ending="length" if example.is_stopped else "complete",
        plan=plan_merge(example.original, snippet, tree=tree),
        tree=tree,
    )
    codes = {finding.code for finding in verdict.findings}
    assert (example.code in codes) == example.triggers, verdict


def test_every_code_has_an_example_of_both_kinds() -> None:
    checks = (ROOT / "apply_service" / "edit").glob("*.py")
    used = {code for file in checks for code in re.findall(r'code="(\w+)"', file.read_text())}
    assert all(f"`{code}`" in DOCS for code in WITHOUT_EXAMPLE)
    used -= WITHOUT_EXAMPLE
    assert used == {example.code for example in EXAMPLES if example.triggers}
    assert used == {example.code for example in EXAMPLES if not example.triggers}
