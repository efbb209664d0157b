"""What a model's certainty does to a verdict: places confirmed, doubts told."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from oracle_service import OracleService
from pipeline_session import functions, make_edit, make_plan, outcome_of, run_edit, tries_of
from verdict_examples import ROOT, Example, read_examples

from apply_service.apply.confidence import place_probability
from apply_service.apply.decision import Branch, Decision
from apply_service.apply.edit_request import EditRequest, SamplingOptions
from apply_service.apply.outcome import Outcome

ORIGINAL = "a = 1\nb = 1\n\na = 1\nc = 1\n"
UPDATE = "# ...\na = 1\nprint(a, end=None)\n# ...\n"
FIRST = ["a = 1", "print(a, end=None)", "b = 1", "", "a = 1", "c = 1"]
SECOND = ["a = 1", "b = 1", "", "a = 1", "print(a, end=None)", "c = 1"]
UNSURE = make_edit(ORIGINAL, UPDATE, constraint="merge")
# Both ends of the update stand once in the file: one valid merge, and no decision.
CERTAIN = make_edit(
    "def shout(path):\n    base = clean(path)\n    return base.upper()\n",
    "# ...\n    base = clean(path)\n    print(base)\n    return base.upper()\n",
    constraint="merge",
)
CERTAIN_LINES = ["def shout(path):", "    base = clean(path)", "    print(base)"]
CERTAIN_LINES += ["    return base.upper()"]
EXAMPLES = [example for example in read_examples() if example.told is not None]


@pytest.fixture(autouse=True)
def _few_rivals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only places that fit nearly as well as the best one are offered."""
    monkeypatch.setattr("apply_service.apply.merge_constraint.MAX_WEIGHT_GAP", 5.0)


@pytest.fixture
def oracle(tiny_model_dir: Path) -> OracleService:
    return OracleService(tiny_model_dir, max_position=40_000, num_blocks=4096)


def outcome(oracle: OracleService, edit: EditRequest) -> Outcome:
    return outcome_of(run_edit(oracle, edit))


def codes(result: Outcome) -> list[str]:
    return [finding.code for finding in result.verdict.findings]


@pytest.mark.parametrize("lines", [FIRST, SECOND])
def test_a_sure_model_settles_an_open_place(oracle: OracleService, lines: list[str]) -> None:
    """Rightly or wrongly: it is the model's word that is taken for it."""
    oracle.will_answer(lines)
    oracle.runner.sureness = 0.99
    result = outcome(oracle, UNSURE)
    assert (result.verdict.status, result.source, codes(result)) == ("applied", "model", [])
    assert list(result.lines) == lines
    oracle.runner.sureness = 0.985
    result = outcome(oracle, UNSURE)
    assert (result.verdict.status, codes(result)) == ("needs_review", ["ambiguous_place"])
    assert list(result.lines) == lines


def test_all_choices_for_a_place_count_together(oracle: OracleService) -> None:
    """Two choices of 98.5 % are less than 98 %."""
    oracle.will_answer(FIRST)
    oracle.runner.sureness = 0.985
    result = outcome(oracle, UNSURE)
    assert len(result.decisions) == 2
    assert result.confidence == pytest.approx(0.985)
    assert codes(result) == ["ambiguous_place"]


@pytest.mark.parametrize(("language", "confidence"), [("python", 1.0), ("markdown", 0.8)])
def test_how_many_blank_lines_there_are_is_no_reason_for_a_review(
    oracle: OracleService, language: str, confidence: float
) -> None:
    """But for prose, where they tell paragraphs apart."""
    head = "class Rooms:\n    def first(self):\n        return 1\n\n"
    head += "    def second(self):\n        return 2\n\n"
    last = "    def last(self):\n        return 9\n"
    added = "    def added(self):\n        return 3\n\n"
    update = f"class Rooms:\n    # ...\n\n{added}    def last(self):\n        # ...\n"
    lines = (head + added + last).splitlines()
    oracle.will_answer(lines)
    oracle.runner.sureness = 0.8
    edit = make_edit(head + last, update, constraint="merge", language=language)
    result = outcome(oracle, edit)
    assert list(result.lines) == lines
    assert [one.probability for one in result.decisions] == [pytest.approx(0.8)]
    assert result.confidence == pytest.approx(confidence)
    assert codes(result) == ([] if confidence == 1.0 else ["low_confidence"])


def test_only_choices_about_a_place_count_for_it() -> None:
    def made(probability: float, *segments: int) -> Decision:
        return Decision(
            line=1,
            chosen=Branch("a", "keeps line 1 of the original", probability),
            alternatives=(),
            outside_mass=0.0,
            segments=frozenset(segments),
        )

    decisions = [made(0.5, 0), made(0.9, 1), made(0.8, 1, 2), made(0.1)]
    assert place_probability(decisions, 0) == 0.5
    assert place_probability(decisions, 1) == pytest.approx(0.72)
    assert place_probability(decisions, 2) == 0.8
    assert place_probability(decisions, 3) == 1.0


def test_a_rival_that_the_model_was_not_shown_leaves_the_doubt(
    oracle: OracleService, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"part_{number:02d}" for number in range(43)]
    text = functions(names)
    for name in ("part_10", "part_30"):
        text = text.replace(f"def {name}(value):\n", f"def {name}(value):\n    check(value)\n")
    edit = make_edit(
        text,
        "# ...\n    check(value)\n    print(value)\n# ...\n",
        constraint="merge",
        scope="region",
    )
    lines = text.split("\n")[:-1]
    places = [place for place, line in enumerate(lines) if line == "    check(value)"]
    oracle.runner.sureness = 0.999

    def answered(place: int) -> Outcome:
        merged = [*lines[: place + 1], "    print(value)", *lines[place + 1 :]]
        for region in tries_of(make_plan(edit), oracle)[0].regions:
            has_place = region.start <= place < region.end
            oracle.will_rewrite(
                region.start, region.end, merged[region.start : region.end + has_place]
            )
        result = outcome(oracle, edit)
        assert list(result.lines) == merged
        return result

    for place in places:
        shown = answered(place)
        assert (shown.verdict.status, codes(shown)) == ("applied", [])
    monkeypatch.setattr(oracle.profile, "max_region_tokens", 1)
    (region,) = tries_of(make_plan(edit), oracle)[0].regions
    (place,) = (place for place in places if region.start <= place < region.end)
    hidden = answered(place)
    assert (hidden.verdict.status, codes(hidden)) == ("needs_review", ["ambiguous_place"])


def test_a_toss_up_is_for_review(oracle: OracleService) -> None:
    oracle.will_answer(SECOND)
    oracle.runner.sureness = 0.4
    result = outcome(oracle, UNSURE)
    assert (result.verdict.status, result.confidence) == ("needs_review", pytest.approx(0.4))
    finding = result.verdict.findings[-1]
    assert (finding.code, finding.line) == ("low_confidence", 2)
    assert finding.message == (
        "the model chose `b = 1` (keeps line 2 of the original) for line 2 of the result with"
        " 40.0 %, over `print(a, end=None)` (takes line 3 of the update)"
    )


def test_a_merge_with_one_path_is_doubted_where_the_model_disagrees(oracle: OracleService) -> None:
    """The merge alone would be applied; that it is the same text does not make the doubt go."""
    oracle.will_answer(CERTAIN_LINES)
    result = outcome(oracle, CERTAIN)
    assert (result.verdict.status, result.source, codes(result)) == ("applied", "model", [])
    assert (result.confidence, result.decisions) == (1.0, ())
    assert [row.is_decision for row in result.evidence] == [False] * len(result.evidence)
    assert result.evidence, "the model was listened to where the new line is entered"
    oracle.runner.outside_mass = 0.9994
    result = outcome(oracle, CERTAIN)
    assert (result.verdict.status, result.source) == ("needs_review", "model")
    assert codes(result) == ["model_disagrees"]
    assert result.verdict.findings[0].line == 3
    assert (
        "99.9 % to other text than line 3 of the result, `print(base)`"
        in result.verdict.findings[0].message
    )


def test_without_a_constraint_nobody_is_asked(oracle: OracleService) -> None:
    oracle.will_answer(CERTAIN_LINES)
    oracle.runner.outside_mass = 0.9994
    original = CERTAIN.original.decode()
    result = outcome(oracle, make_edit(original, CERTAIN.update, constraint="none"))
    assert (result.verdict.status, codes(result)) == ("applied", [])
    assert (result.confidence, result.decisions, result.evidence) == (None, (), ())


def test_an_answer_that_is_cut_off_has_no_other_finding(oracle: OracleService) -> None:
    oracle.will_answer(SECOND)
    oracle.runner.sureness = 0.3
    short = replace(UNSURE, sampling=SamplingOptions(max_tokens=20), has_fallback=False)
    result = outcome(oracle, short)
    assert (result.verdict.status, codes(result)) == ("rejected", ["truncated"])
    assert [decision.line for decision in result.decisions] == [2]


@pytest.mark.parametrize(
    "example", EXAMPLES, ids=lambda example: f"{example.code}-{example.triggers}"
)
def test_example_of_the_docs(oracle: OracleService, example: Example) -> None:
    assert example.told is not None
    what, value = example.told
    setattr(oracle.runner, {"sure": "sureness", "outside": "outside_mass"}[what], value)
    oracle.will_answer(example.result)
    original, update = ("\n".join([*lines, ""]) for lines in (example.original, example.update))
    result = outcome(oracle, make_edit(original, update, constraint="merge"))
    assert list(result.lines) == example.result
    assert (example.code in codes(result)) == example.triggers, result.verdict


def test_every_code_of_the_model_has_an_example_of_both_kinds() -> None:
    used = set(
        re.findall(r'code="(\w+)"', (ROOT / "apply_service/apply/confidence.py").read_text())
    )
    assert used == {example.code for example in EXAMPLES if example.triggers}
    assert used == {example.code for example in EXAMPLES if not example.triggers}
