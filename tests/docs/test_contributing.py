"""The worked examples of CONTRIBUTING.md do what they say, and the files that it names exist."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from drafter_oracle import make_target
from litestar import Litestar, get
from litestar.testing import TestClient
from page_snippets import ROOT, PageSnippet, snippets_of

from apply_service.edit.finding import Finding
from apply_service.edit.read.segment import Segment, SegmentLine, Snippet
from apply_service.edit.syntax.languages import LANGUAGES
from apply_service.edit.syntax.symbol_rules import SymbolRules, field_named
from apply_service.edit.verdict.comparison import Comparison
from batching.drafters.drafter import CANDIDATES, DraftAsk, Drafter, Features, ObservedRequest
from batching.drafters.target import TargetModel
from batching.request import SamplingParams
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
        *(SymbolRules, get, field_named, TargetModel, ObservedRequest, DraftAsk),
    )
} | {"LANGUAGES": LANGUAGES, "torch": torch, "CANDIDATES": CANDIDATES, "Features": Features}
MAX_LINES = {"speculator": 24}


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


def test_the_speculator(tiny_model_dir: Path) -> None:
    target = make_target(tiny_model_dir)
    drafter: Drafter = run_example("speculator")["LikeliestNext"](target)
    candidates = torch.full((2, 8), -1)
    candidates[:, 0] = torch.tensor([7, 9])
    observed = ObservedRequest(
        request_id="0",
        rows=(0, 1),
        start=0,
        token_ids=(5, 7),
        next_token_ids=(7, 9),
        block_ids=(0,),
    )
    ask = DraftAsk(
        request_id="0",
        token_ids=(4, 5),
        num_prompt_tokens=1,
        block_ids=(0,),
        sampling=SamplingParams(max_tokens=9),
        max_nodes=8,
        max_depth=8,
    )
    drafter.observe([observed], {CANDIDATES: candidates})
    (draft,) = drafter.draft([ask])
    assert draft.token_ids == (7, 9)


def test_the_route() -> None:
    with TestClient(Litestar([run_example("route")["list_languages"]])) as client:
        assert client.get("/v1/languages").json() == sorted(LANGUAGES)


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES.keys())
def test_an_example_is_short(example: PageSnippet) -> None:
    assert example.body.count("\n") <= MAX_LINES.get(example.info.removeprefix("python "), 10)


def test_the_files_of_the_page_exist() -> None:
    named_paths = re.findall(r"[` ]((?:apply_service|lookup|tests|docs)/[\w./]+)", PAGE.read_text())
    assert len(named_paths) > 5
    missing = [path for path in named_paths if not (ROOT / path).exists()]
    assert not missing
