"""Fences around an update or its parts are no lines; fences of the file itself are."""

from __future__ import annotations

import pytest

from apply_service.edit.read.fences import fenced_parts, is_fence, is_path_line
from apply_service.edit.read.snippet import read_snippet


def parts(update: str, path: str | None = "x.py", original: str = "") -> list[list[str]]:
    lines = update.splitlines()
    spans = fenced_parts(lines, original.splitlines(), path=path)
    return [lines[start:end] for start, end in spans]


@pytest.mark.parametrize(
    "opening",
    ["```", "```python", "```python lib/x.py", "```12:15:lib/x.py", "~~~~", "```js {1,3}"],
)
def test_one_fence_with_any_label(opening: str) -> None:
    closing = opening[0] * 4
    assert parts(f"\n{opening}\na\n{closing}\n") == [["a"]]


def test_fences_around_each_part_make_parts() -> None:
    assert parts("```py\na\n```\n\n```py\nb\n```") == [["a"], ["b"]]
    assert parts("lib/x.py\n```py\na\n```\n**lib/x.py**\n```py\nb\n```\n") == [["a"], ["b"]]
    assert parts("Here is the change:\n\n```py\na\n```\nThat is all of it.") == [["a"]]


def test_a_fence_inside_the_outer_one_is_text() -> None:
    assert parts("```py\na\n```js\nb\n```\nc = 1;\n```") == [["a", "```js", "b", "```", "c = 1;"]]


@pytest.mark.parametrize(
    "update",
    ["```python\na", "a\n```\nb\n```", "x = 1\n```py\na\n```", "````\na\n```", "``\na\n``"],
)
def test_other_fences_are_text(update: str) -> None:
    assert parts(update) == [update.splitlines()]


def test_markdown_keeps_its_fences() -> None:
    assert parts("```python\na\n```", "README.md") == [["```python", "a", "```"]]
    assert parts("```js\na\n```\n\n```js\nb\n```", "a.mdx") == [
        ["```js", "a", "```", "", "```js", "b", "```"]
    ]


def test_markdown_may_be_wrapped_as_markdown_or_diff() -> None:
    assert parts("```markdown\n# a\n\n```js\nb\n```\n```", "a.md") == [
        ["# a", "", "```js", "b", "```"]
    ]
    assert parts("```diff\n-a\n+b\n```", "a.md") == [["-a", "+b"]]
    fenced = "```markdown\n# a\n```"
    assert parts(fenced, "a.md", fenced) == [fenced.splitlines()]


def test_a_gap_lies_between_fenced_parts() -> None:
    original = ["a = 1", "b = 1", "c = 1", "d = 1", "last = 1"]
    snippet = read_snippet(["```", "a = 2", "```", "```", "last = 2", "```"], original, path="x.py")
    assert [segment.texts for segment in snippet.segments] == [["a = 2"], ["last = 2"]]
    assert [line.number for one in snippet.segments for line in one.lines] == [2, 5]
    assert snippet.segments[0].has_gap_after
    assert snippet.segments[1].has_gap_before


@pytest.mark.parametrize("line", ["lib/x.py", "`x.py`", "### lib/x.py:", "**src/a-b/x.test.ts**"])
def test_paths(line: str) -> None:
    assert is_path_line(line)


@pytest.mark.parametrize("line", ["x = 1.5", "call(x.py)", "", "a sentence.", "return", "x.y = z"])
def test_no_paths(line: str) -> None:
    assert not is_path_line(line)
    assert not is_fence(line)
