"""The worked examples of CONTRIBUTING.md do what they say, and the files that it names exist."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from litestar import Litestar, get
from litestar.testing import TestClient
from page_snippets import ROOT, PageSnippet, snippets_of

from apply_service.edit.finding import Finding
from apply_service.edit.read.segment import Segment, SegmentLine, Snippet
from apply_service.edit.syntax.languages import LANGUAGES
from apply_service.edit.syntax.symbol_rules import SymbolRules, field_named
from apply_service.edit.verdict.comparison import Comparison
from lookup.proposer import Draft, Proposer

PAGE = ROOT / "CONTRIBUTING.md"
EXAMPLES = {
    snippet.info.removeprefix("python "): snippet
    for snippet in snippets_of(PAGE)
    if snippet.info.startswith("python ")
}
# What an example may use without importing it.
KNOWN = {
    value.__name__: value
    for value in (
        *(Comparison, Draft, Finding, Iterator, Segment, SegmentLine, Sequence, Snippet),
        *(SymbolRules, get, field_named),
    )
} | {"LANGUAGES": LANGUAGES}
MAX_LINES = 10


def run_example(kind: str) -> dict[str, Any]:
    """The names that an example defines."""
    names: dict[str, Any] = {**KNOWN, "__name__": __name__}
    exec(compile(EXAMPLES[kind].body, str(PAGE), "exec", dont_inherit=True), names)
    return names


def test_the_finding() -> None:
    check = run_example("finding")["check_tab_added"]
    snippet = Snippet(format="whole", segments=())
    (finding,) = check(Comparison(["a = 1"], snippet, ["a = 1", "\tb = 2"]))
    assert (finding.code, finding.line) == ("tab_added", 2)
    assert not list(check(Comparison(["\ta = 1"], snippet, ["\ta = 1", "\tb = 2"])))


def test_the_format() -> None:
    reader = run_example("format")["ArrowReader"]()
    lines = [SegmentLine("a = 1 ==> a = 2", 1)]
    assert reader.is_arrow(lines)
    (segment,) = reader.read(lines).segments
    assert (segment.old, segment.texts) == (("a = 1",), ["a = 2"])


def test_the_language() -> None:
    assert "function_declaration" in run_example("language")["ZIG"].definitions


def test_the_drafter() -> None:
    proposer: Proposer = run_example("drafter")["RepeatDrafter"]()
    proposer.build()
    proposer.commit([5, 7])
    assert proposer.propose(3).token_ids == (7, 7, 7)


def test_the_route() -> None:
    with TestClient(Litestar([run_example("route")["list_languages"]])) as client:
        assert client.get("/v1/languages").json() == sorted(LANGUAGES)


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES.keys())
def test_an_example_is_short(example: PageSnippet) -> None:
    assert example.body.count("\n") <= MAX_LINES


def test_the_files_of_the_page_exist() -> None:
    named_paths = re.findall(r"[` ]((?:apply_service|lookup|tests|docs)/[\w./]+)", PAGE.read_text())
    assert len(named_paths) > 5
    missing = [path for path in named_paths if not (ROOT / path).exists()]
    assert not missing
