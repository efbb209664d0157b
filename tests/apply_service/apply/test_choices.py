"""Choices: what a doubtful update may mean, and the text that an id stands for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from case_files import case_file
from hypothesis import given
from hypothesis import strategies as st
from pipeline_session import make_edit, make_plan

from apply_service.apply.choices import (
    MAX_CHOICES,
    MAX_DIFF_LINES,
    Choice,
    choice_id,
    choices_among,
)
from apply_service.apply.conclusion import (
    choices_of,
    conclude_resolved,
    doubt_about,
    settle_doubt,
)
from apply_service.apply.conclusion import try_conclude_alone as conclude
from apply_service.apply.edit_request import EditRequest
from apply_service.apply.errors import DoubtfulUpdateError, UnknownChoiceError
from apply_service.apply.outcome import Outcome
from apply_service.edit.syntax.symbol import Symbol
from apply_service.evaluate.cases.case_file import read_cases

FILE = "class A:\n    def close(self):\n        self.fd = None\n\n\n"
FILE += "class B:\n    def close(self):\n        self.fd = None\n"
UPDATE = "# ...\n    def close(self):\n        log(self)\n        self.fd = None\n# ...\n"
DOUBTFUL = make_edit(FILE, UPDATE, path="a.py", use_model="never")
# Every so many of the edits of agents are tried.
STEP = 29


def asked(edit: EditRequest) -> Outcome:
    plan = make_plan(edit)
    outcome = conclude(plan)
    assert outcome is not None
    return settle_doubt(plan, outcome)


def test_two_places_alike_are_two_choices() -> None:
    first, second = asked(DOUBTFUL).choices[:2]
    assert {first.symbol, second.symbol} == {"A.close", "B.close"}
    assert {first.start_line, second.start_line} == {3, 8}
    assert first.start_line == first.end_line
    for choice in (first, second):
        assert choice.diff.startswith("@@ -")
        assert [line for line in choice.diff.split("\n") if line.startswith(("+", "-"))] == [
            "+        log(self)"
        ]
        assert choice.reason == (
            f"It adds 1 line after line {choice.start_line - 1} in {choice.symbol} and removes none"
            " there."
        )


def test_probabilities_fall_and_those_of_little_weight_are_left_out() -> None:
    choices = asked(DOUBTFUL).choices
    probabilities = [choice.probability for choice in choices]
    assert probabilities == sorted(probabilities, reverse=True)
    assert 0 < sum(probabilities) <= 1
    texts = [(str(number),) for number in range(8)]
    assert len(choices_among(DOUBTFUL, texts, [-0.1, *[-9.0] * 7])) == 2
    assert len(choices_among(DOUBTFUL, texts, [-2.5] * 8)) == MAX_CHOICES


@pytest.mark.parametrize(
    "name", ["agent_edits", "further_agent_edits", "later_agent_edits", "everyday_edits"]
)
def test_each_choice_of_an_agents_edit_leads_to_its_text(name: str) -> None:
    num_asked = 0
    for case in [*read_cases(case_file(name))][::STEP]:
        edit = make_edit(
            case.original,
            case.update,
            path=case.path,
            language=case.language,
            instruction=case.instruction,
            use_model="never",
        )
        plan = make_plan(edit)
        if plan.merge is None or plan.merge.is_certain:
            continue
        choices = choices_of(plan)
        assert len({choice.id for choice in choices}) == len(choices) <= MAX_CHOICES
        texts = {choice_id(edit, text): text for text in doubt_about(plan, plan.merge).texts()}
        assert texts[choices[0].id] == plan.merge.best
        for choice in choices:
            outcome = conclude(make_plan(replace(edit, resolve=choice.id)))
            assert outcome is not None
            assert (outcome.source, outcome.lines) == ("resolved", texts[choice.id])
            assert outcome.verdict.status in ("applied", "unchanged", "needs_review")
            assert 1 <= choice.start_line <= choice.end_line
            assert choice.diff.count("\n") <= MAX_DIFF_LINES
            assert choice.num_lines_left_out == 0 or choice.diff.count("\n") == MAX_DIFF_LINES
            num_asked += 1
            assert stands_in(choice, plan.original_lines)
    assert num_asked > 1


def stands_in(choice: Choice, lines: Sequence[str]) -> bool:
    """Whether each part of a diff that is not cut off has the lines of the original."""
    parts = re.split(r"^@@ -(\d+).*\n", choice.diff, flags=re.M)[1:]
    if choice.num_lines_left_out:
        del parts[-2:]
    for start, part in zip(parts[::2], parts[1::2], strict=True):
        old = [line[1:] for line in part.split("\n")[:-1] if not line.startswith("+")]
        place = max(int(start) - 1, 0)
        if list(lines[place : place + len(old)]) != old:
            return False
    return bool(choice.diff) or choice.reason.startswith(("It changes nothing", "It keeps"))


def test_a_long_difference_is_cut_and_says_so() -> None:
    lines = tuple(f"new {number}" for number in range(100))
    (choice,) = choices_among(DOUBTFUL, [(*DOUBTFUL.original.lines, *lines)], [-1.0])
    assert choice.diff.count("\n") == MAX_DIFF_LINES
    assert choice.diff.count("\n") + choice.num_lines_left_out == 100 + 3 + 1


def test_what_all_choices_change_is_not_shown() -> None:
    original = [str(number) for number in range(40)]
    shared = ["first", *original[1:]]
    texts = [[*shared[:20], "x", *shared[20:]], [*shared[:30], "x", *shared[30:]]]
    edit = make_edit("\n".join(original), "")
    choices = choices_among(
        edit, texts, [-0.5, -1.0], [Symbol(name="f", kind="function", start=18, header=18, end=25)]
    )
    assert [re.findall(r"^@@ -(\d+)", choice.diff, re.M) for choice in choices] == [["18"], ["28"]]
    assert [choice.symbol for choice in choices] == ["f", None]


@given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=20), st.text(max_size=20))
def test_an_id_stands_for_the_request_and_the_text(
    update: str, other: str, line: str, other_line: str
) -> None:
    one, two = make_edit("a\n", update), make_edit("a\n", other)
    assert (choice_id(one, [line]) == choice_id(two, [line])) == (update == other)
    assert (choice_id(one, [line]) == choice_id(one, [other_line])) == (line == other_line)
    assert choice_id(one, [line]) != choice_id(replace(one, path="p"), [line])


@pytest.mark.parametrize(
    "change",
    [
        {"resolve": "0" * 16},
        {"update": UPDATE.replace("log", "tell")},
        {"path": "b.py"},
        {"instruction": "Log it."},
        {"original": make_edit(FILE.replace("class A", "class C"), "").original},
    ],
    ids=lambda change: next(iter(change)),
)
def test_an_id_of_another_edit_is_unknown_and_there_are_fresh_ones(change: dict[str, str]) -> None:
    chosen = asked(DOUBTFUL).choices[0].id
    plan = make_plan(replace(DOUBTFUL, **{"resolve": chosen, **change}))
    with pytest.raises(UnknownChoiceError, match="is no choice of this edit") as caught:
        conclude(plan)
    assert [choice.id for choice in caught.value.choices] == [one.id for one in choices_of(plan)]
    fresh = caught.value.choices[0]
    assert conclude_resolved(plan, fresh.id).verdict.status == "applied"


def test_a_certain_edit_has_no_choices() -> None:
    outcome = asked(replace(DOUBTFUL, update=FILE.replace("fd", "file")))
    assert (outcome.verdict.status, outcome.choices) == ("applied", ())


def test_doubt_ends_as_the_caller_wants() -> None:
    ask, best, refuse = (
        asked(replace(DOUBTFUL, on_doubt=on_doubt)) for on_doubt in ("ask", "best", "refuse")
    )
    assert (ask.verdict.status, best.verdict.status) == ("needs_review", "applied")
    assert refuse.verdict.status == "rejected"
    assert (len(ask.choices) > 1, best.choices, refuse.choices) == (True, (), ())
    assert ask.lines == best.lines == refuse.lines
    assert ask.verdict.findings == best.verdict.findings
    assert ask.confidence == best.confidence


@pytest.mark.parametrize("on_doubt", ["ask", "best"])
def test_a_broken_merge_is_never_taken_for_certain(on_doubt: str) -> None:
    broken = replace(
        DOUBTFUL, on_doubt=on_doubt, update=UPDATE.replace("log(self)", "log = = self")
    )
    outcome = asked(broken)
    assert outcome.verdict.status == "needs_review"
    resolved = asked(replace(broken, resolve=outcome.choices[0].id))
    assert resolved.source == "resolved"
    assert resolved.verdict.status == "needs_review"
    assert [finding.code for finding in resolved.verdict.findings] == ["syntax_error"]


def test_an_update_without_a_place_is_refused_with_choices() -> None:
    unplaced = make_edit(FILE, "        self.fd = open_again()\n", path="a.py", use_model="never")
    with pytest.raises(DoubtfulUpdateError, match="marker") as caught:
        asked(unplaced)
    choice = caught.value.choices[0]
    resolved = asked(replace(unplaced, resolve=choice.id))
    assert (resolved.source, resolved.verdict.status) == ("resolved", "applied")
