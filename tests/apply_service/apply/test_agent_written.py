"""The cases written as large models write edits: their format, their spread, their sense."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from case_files import read_records

REQUIRED_KEYS = {"id", "path", "language", "style", "original", "update", "expected"}
OPTIONAL_KEYS = {"instruction", "must_refuse", "note"}

STYLES = {
    "context": "changed lines between lines of the file, markers around them",
    "slash marker": "// as the comment of a language that has another",
    "definition": "a whole definition in the place of the one with its name",
    "new definition": "a definition whose place its neighbours tell",
    "lone line": "an import or a constant alone between two markers",
    "comment anchor": "a comment or a docstring as the only anchor",
    "markers in a row": "several markers, one after another",
    "indentation": "shifted, or blanks for tabs",
    "class header": "class header, marker, one new method",
    "no marker": "a fragment or the whole file",
    "diff": "with file headers and hunks",
    "bare diff": "without headers, or with wrong numbers",
    "unspaced diff": "context lines without their leading blank",
    "diff with markers": "plus and minus lines, and markers",
    "out of order": "segments in another order than the file's",
    "instruction comments": "comments that are no part of the result",
    "search replace aider": "<<<<<<< SEARCH, ======= and >>>>>>> REPLACE, path and fence around",
    "search replace cline": "------- SEARCH, ======= and +++++++ REPLACE",
    "patch": "*** Begin Patch",
    "inline marker": "a marker behind code, on the same line",
    "removal directive": "// remove name",
    "adjacency": "a block removed by leaving it out between its neighbours",
    "fence": "the update in a code fence",
    "named markers": "// ... existing imports ...",
    "ellipsis": "a bare ... or its single character",
    "marker text": "the file holds markers or prompt tags as text",
    "odd bytes": "CRLF, no final newline, form feeds, trailing blanks",
    "look-alike": "a renamed or modified line in the place of the one it looks like",
}
REFUSED_STYLES = {
    "ambiguous place": "the anchors fit in two places",
    "missing anchor": "the anchors are nowhere in the file",
    "contradiction": "two segments say different things about the same lines",
    "other file": "an update for another file",
    "no place": "new lines, and nothing tells where they go",
    "search missing": "the SEARCH text is not in the file",
    "search twice": "the SEARCH text is in the file twice",
    "no marker unplaceable": "no marker, no anchor, and not the whole file",
    "unclear removal": "a removal directive for nothing, or for two things",
}


CASES = read_records("agent_written")
EACH = pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])


def lines_of(text: str) -> list[str]:
    """The lines without line ending and blanks around, empty ones left out."""
    return [line.strip() for line in text.split("\n") if line.strip()]


@EACH
def test_a_case_has_the_keys_of_the_format(case: dict[str, Any]) -> None:
    assert REQUIRED_KEYS <= case.keys() <= REQUIRED_KEYS | OPTIONAL_KEYS
    texts = {key: value for key, value in case.items() if key != "must_refuse"}
    assert all(isinstance(value, str) and value for value in texts.values())
    assert case.get("must_refuse", True) is True


@EACH
def test_what_must_be_refused_leaves_the_file_as_it_is(case: dict[str, Any]) -> None:
    is_refused = case.get("must_refuse", False)
    assert (case["expected"] == case["original"]) == is_refused
    assert case["style"] in (REFUSED_STYLES if is_refused else STYLES)


@EACH
def test_every_expected_line_comes_from_the_file_or_the_update(case: dict[str, Any]) -> None:
    given = lines_of(case["update"])
    given += [line[1:].strip() for line in given if line[0] in "+- "]
    known = Counter(lines_of(case["original"]))
    invented = [
        line
        for line in lines_of(case["expected"])
        if line not in known and not any(line in update_line for update_line in given)
    ]
    completed = {"export const options = { timeout: 10000, retries: 2, verbose: false };"}
    assert set(invented) <= completed


@EACH
def test_line_endings_and_the_final_newline_stay(case: dict[str, Any]) -> None:
    original, expected = case["original"], case["expected"]
    if case["style"] == "no marker":
        return
    assert original.endswith("\n") == expected.endswith("\n")
    assert ("\r\n" in original) == ("\r\n" in expected)
    assert "\r\n" not in original or "\n" not in expected.replace("\r\n", "")


def test_ids_are_unique() -> None:
    assert len({case["id"] for case in CASES}) == len(CASES)


def test_every_style_and_many_languages_are_there() -> None:
    kept = Counter(case["style"] for case in CASES if not case.get("must_refuse"))
    refused = Counter(case["style"] for case in CASES if case.get("must_refuse"))
    assert all(kept[style] >= 5 for style in STYLES)
    assert all(refused[style] >= 2 for style in REFUSED_STYLES)
    assert refused.total() >= 20
    assert len(CASES) >= 130
    languages = Counter(case["language"] for case in CASES)
    assert len([language for language, count in languages.items() if count >= 4]) >= 20
