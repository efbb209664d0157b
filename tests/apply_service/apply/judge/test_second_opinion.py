"""What a judge's word makes of a question, and what it can never make of one."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import pytest
from case_files import case_file
from hypothesis import given
from hypothesis import strategies as st
from pipeline_session import make_edit, make_plan

from apply_service.apply.choices import Choice, choice_id
from apply_service.apply.conclusion import settle_doubt, try_conclude_alone
from apply_service.apply.edit_model import EditModel
from apply_service.apply.edit_request import EditRequest
from apply_service.apply.errors import DoubtfulUpdateError, TextWorkerError
from apply_service.apply.intake import Intake
from apply_service.apply.judge.second_opinion import SecondOpinion
from apply_service.apply.judge.word import Word
from apply_service.apply.outcome import Outcome
from apply_service.apply.planning.edit_plan import EditPlan
from apply_service.apply.planning.text_work import TextWork
from apply_service.apply.run import ApplyPipeline
from apply_service.edit.place.merge import MIN_CERTAINTY, MergePlan
from apply_service.evaluate.cases.case_file import read_cases
from apply_service.evaluate.cases.planned_case import edit_of_case

FILE = "class A:\n    def close(self):\n        self.fd = None\n\n\n"
FILE += "class B:\n    def close(self):\n        self.fd = None\n"
UPDATE = "# ...\n    def close(self):\n        log(self)\n        self.fd = None\n# ...\n"
DOUBTFUL = make_edit(FILE, UPDATE, path="a.py", use_model="never")


@dataclass
class Says:
    """A judge that names the choice in this definition; None for none, "silence" for no word."""

    symbol: str | None
    accuracy: float = 0.97
    num_asked: int = 0
    left_s: list[float | None] = field(default_factory=list)

    async def ask(
        self, edit: EditRequest, choices: Sequence[Choice], *, left_s: float | None = None
    ) -> Word | None:
        self.num_asked += 1
        self.left_s.append(left_s)
        if self.symbol == "silence":
            return None
        numbers = [n for n, one in enumerate(choices) if one.symbol == self.symbol]
        number = numbers[0] if numbers else None
        return Word(number=number, accuracy=self.accuracy, model="judge", seconds=0.5)


def question_of(edit: EditRequest) -> Outcome:
    plan = make_plan(edit)
    outcome = try_conclude_alone(plan)
    assert outcome is not None
    return settle_doubt(plan, outcome)


def judged(edit: EditRequest, judge: Says, text_work: TextWork | None = None) -> Outcome:
    plan = make_plan(edit)
    opinion = SecondOpinion(judge, text_work or TextWork())
    return asyncio.run(opinion.on(plan, question_of(edit)))


@pytest.mark.parametrize(("symbol", "line"), [("A.close", 3), ("B.close", 8)])
def test_what_a_good_judge_names_is_applied(symbol: str, line: int) -> None:
    before, outcome = question_of(DOUBTFUL), judged(DOUBTFUL, Says(symbol))
    assert before.verdict.status == "needs_review"
    assert (outcome.verdict.status, outcome.source) == ("applied", "judge")
    assert (outcome.choices, outcome.verdict.findings) == ((), ())
    assert outcome.lines[line - 1] == "        log(self)"
    assert outcome.confidence is not None
    assert MIN_CERTAINTY <= outcome.confidence < 1
    chosen = next(one for one in before.choices if one.symbol == symbol)
    assert outcome.judge is not None
    assert (outcome.judge.choice, outcome.judge.model) == (chosen.id, "judge")


def test_a_poor_judges_word_against_the_odds_is_not_enough() -> None:
    before, outcome = question_of(DOUBTFUL), judged(DOUBTFUL, Says("B.close", accuracy=0.75))
    assert (outcome.verdict.status, outcome.source) == ("needs_review", before.source)
    assert outcome.lines == before.lines
    probabilities = {one.symbol: one.probability for one in outcome.choices}
    assert probabilities["B.close"] > before.choices[1].probability
    assert [one.symbol for one in outcome.choices] == ["B.close", "A.close"]
    assert outcome.confidence == pytest.approx(probabilities["A.close"], abs=1e-3)
    assert {one.id for one in outcome.choices} == {one.id for one in before.choices}


def test_none_of_them_lowers_the_certainty() -> None:
    before, outcome = question_of(DOUBTFUL), judged(DOUBTFUL, Says(None))
    assert outcome.verdict == before.verdict
    assert outcome.confidence is not None
    assert before.confidence is not None
    assert outcome.confidence < before.confidence / 2
    assert outcome.judge is not None
    assert outcome.judge.choice is None


def test_a_judge_without_a_word_changes_nothing() -> None:
    before, outcome = question_of(DOUBTFUL), judged(DOUBTFUL, Says("silence"))
    assert replace(outcome, request_id="", total_s=0.0) == replace(
        before, request_id="", total_s=0.0
    )


def test_a_judge_whose_word_could_settle_nothing_is_not_asked() -> None:
    judge = Says("A.close", accuracy=0.5)
    assert judged(DOUBTFUL, judge).verdict.status == "needs_review"
    assert judge.num_asked == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"may_ask_judge": False},
        {"on_doubt": "best"},
        {"on_doubt": "refuse"},
        {"has_fallback": False, "checks": "off"},
        {"update": FILE.replace("fd", "file")},
    ],
    ids=["not wanted", "best", "refuse", "no checks", "certain"],
)
def test_only_questions_are_put_to_a_judge(changes: dict[str, object]) -> None:
    judge, edit = Says("A.close"), replace(DOUBTFUL, **changes)  # type: ignore[arg-type]
    assert judged(edit, judge).source != "judge"
    assert judge.num_asked == 0


def test_a_new_syntax_error_is_never_applied() -> None:
    broken = replace(DOUBTFUL, update=UPDATE.replace("log(self)", "log = = self"))
    outcome = judged(broken, Says("A.close", accuracy=0.999))
    assert outcome.verdict.status == "needs_review"
    assert "syntax_error" in {one.code for one in outcome.verdict.findings}
    assert outcome.judge is not None


def test_a_judge_has_the_time_that_the_edit_has_left() -> None:
    judge = Says("A.close")
    judged(replace(DOUBTFUL, deadline_s=9.0), judge)
    judged(DOUBTFUL, judge)
    first, second = judge.left_s
    assert first is not None
    assert 0 < first <= 8.5
    assert second is None


class _Fails(TextWork):
    async def run(self, *_arguments: object, **_options: object) -> object:  # type: ignore[override]
        raise TextWorkerError("the process for this died")


def test_a_failure_after_the_word_leaves_the_question() -> None:
    judge = Says("A.close")
    assert judged(DOUBTFUL, judge, _Fails()).source == question_of(DOUBTFUL).source
    assert judge.num_asked == 1


def test_a_form_in_doubt_has_a_judge_too() -> None:
    update = '{"old_string": "        self.fd = None\\n", "new_string": "        self.fd = 0\\n"}'
    edit = replace(DOUBTFUL, update=update, format="old_new")
    before, outcome = question_of(edit), judged(edit, Says("B.close"))
    assert before.verdict.status == "needs_review"
    assert (outcome.verdict.status, outcome.source) == ("applied", "judge")
    assert outcome.lines[7] == "        self.fd = 0"


def in_pipeline(edit: EditRequest, judge: Says, intake: type[Intake] = Intake) -> Outcome:
    async def scenario() -> Outcome:
        text_work = TextWork()
        pipeline = ApplyPipeline(
            _NoModel(),
            intake(max_file_bytes=100_000, text_work=text_work),
            text_work=text_work,
            second_opinion=SecondOpinion(judge, text_work),
        )
        return await pipeline.apply(edit)

    return asyncio.run(scenario())


class _NoModel:
    async def model_for(self, plan: EditPlan) -> EditModel:
        raise AssertionError("no model is asked")


UNPLACED = make_edit(FILE, "        self.fd = open_again()\n", path="a.py", use_model="never")


def test_an_update_without_a_place_is_put_to_a_judge() -> None:
    with pytest.raises(DoubtfulUpdateError) as refused:
        make_plan(UNPLACED)
    first = refused.value.choices[0]
    judge = Says(first.symbol, accuracy=0.999)
    outcome = in_pipeline(UNPLACED, judge)
    assert (outcome.verdict.status, outcome.source) == ("applied", "judge")
    assert outcome.judge is not None
    assert outcome.judge.choice == first.id
    assert judge.num_asked == 1


def test_planning_an_update_without_a_place_counts_for_its_deadline() -> None:
    class Hurries(Intake):
        """Notes the seconds that each plan may take."""

        allowed_s: ClassVar[list[float | None]] = []

        async def plan(self, edit: EditRequest) -> EditPlan:
            self.allowed_s.append(edit.deadline_s)
            return await super().plan(edit)

    judge = Says("silence")
    with pytest.raises(DoubtfulUpdateError):
        in_pipeline(replace(UNPLACED, deadline_s=30.0), judge, Hurries)
    first, second = Hurries.allowed_s
    assert first == 30.0
    assert second is not None
    assert second < first


@pytest.mark.parametrize(
    ("judge", "changes"),
    [
        (Says("silence"), {}),
        (Says(None), {}),
        (Says("A.close", accuracy=0.5), {}),
        (Says("A.close"), {"may_ask_judge": False}),
        (Says("A.close"), {"on_doubt": "refuse"}),
    ],
)
def test_without_a_word_it_is_the_same_refusal(judge: Says, changes: dict[str, object]) -> None:
    with pytest.raises(DoubtfulUpdateError) as refused:
        make_plan(UNPLACED)
    with pytest.raises(DoubtfulUpdateError) as caught:
        in_pipeline(replace(UNPLACED, **changes), judge)  # type: ignore[arg-type]
    assert caught.value.choices == refused.value.choices


@dataclass
class SaysNumber(Says):
    """A judge that names the choice of this number."""

    symbol: str | None = None
    number: int = 0

    async def ask(
        self, edit: EditRequest, choices: Sequence[Choice], *, left_s: float | None = None
    ) -> Word | None:
        return Word(number=self.number, accuracy=self.accuracy, model="judge", seconds=0.5)


def test_a_choice_is_found_by_its_id_and_not_by_its_number() -> None:
    """The second choice may be a text that was made, and no merge; its weight is not known."""
    case = next(case for case in read_cases(case_file("agent_edits")) if case.id == "managed-026")
    edit = edit_of_case(case, use_model="never")
    before = question_of(edit)
    merges = make_plan(edit).merge
    assert merges is not None
    for number, choice in enumerate(before.choices):
        outcome = judged(edit, SaysNumber(number=number, accuracy=0.999))
        chosen = try_conclude_alone(make_plan(replace(edit, resolve=choice.id)))
        assert chosen is not None
        assert outcome.judge is not None
        assert outcome.judge.choice == choice.id
        if chosen.lines not in merges.merges:
            assert (outcome.source, outcome.choices) == (before.source, before.choices)
        elif outcome.source == "judge":
            assert outcome.lines == chosen.lines
        assert {one.id for one in outcome.choices} <= {one.id for one in before.choices}
    assert any(one.id not in ids_of(edit, merges) for one in before.choices)


def ids_of(edit: EditRequest, plan: MergePlan) -> set[str]:
    return {choice_id(edit, lines) for lines in plan.merges}


SHARES = st.lists(st.floats(min_value=1e-3, max_value=1), min_size=1, max_size=8)


def plan_with(shares: Sequence[float], none_share: float) -> MergePlan:
    total = sum(shares) + none_share
    found = sorted((share / total for share in shares), reverse=True)
    return MergePlan(
        original_lines=("a",),
        merges=tuple((str(number),) for number in range(len(found))),
        weights=tuple(map(math.log, found)),
        certainty=found[0],
    )


@given(SHARES, st.floats(min_value=0, max_value=1), st.integers(0, 8), st.floats(0.5, 0.999))
def test_a_word_multiplies_the_odds_of_what_it_names_and_of_nothing_else(
    shares: list[float], none_share: float, number: int, accuracy: float
) -> None:
    plan = plan_with(shares, none_share)
    named = number if number < len(shares) else None
    told = plan.told(named, accuracy=accuracy)
    before = {plan.merges[place]: math.exp(weight) for place, weight in enumerate(plan.weights)}
    after = {told.merges[place]: math.exp(weight) for place, weight in enumerate(told.weights)}
    assert before.keys() == after.keys()
    assert list(told.weights) == sorted(told.weights, reverse=True)
    assert told.certainty == pytest.approx(math.exp(told.weights[0]))
    assert sum(after.values()) <= 1 + 1e-9
    odds = accuracy / (1 - accuracy)
    chosen = None if named is None else plan.merges[named]
    if chosen is not None and before[chosen] < 1 - 1e-9:
        gained = after[chosen] / (1 - after[chosen]) / (before[chosen] / (1 - before[chosen]))
        assert gained == pytest.approx(odds, rel=1e-6)
    others = [text for text in before if text != chosen]
    for text in others[1:]:
        ratio = before[text] / before[others[0]]
        assert after[text] / after[others[0]] == pytest.approx(ratio, rel=1e-6)


def test_a_word_that_is_right_by_chance_changes_nothing() -> None:
    plan = plan_with([0.5, 0.3], 0.2)
    for number in (0, 1, None):
        told = plan.told(number, accuracy=0.5)
        assert told.merges == plan.merges
        assert told.weights == pytest.approx(plan.weights)


def test_the_certainty_of_a_capped_merge_is_its_odds() -> None:
    plan = MergePlan(original_lines=("a",), merges=(("b",),), weights=(0.0,), certainty=0.75)
    assert plan.told(0, accuracy=0.8).certainty == pytest.approx(12 / 13)
    assert plan.told(None, accuracy=0.8).certainty == pytest.approx(3 / 7)
