"""The pipeline as a contender, with an oracle for its model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from case_files import case_file
from oracles.damage.corrupting_oracle import CorruptingOracle

from apply_service.apply.edit_request import UseModel
from apply_service.apply.run import PipelineLimits
from apply_service.evaluate.cases.case_file import Case, read_cases
from apply_service.evaluate.cases.case_result import CaseAnswer
from apply_service.evaluate.cases.planned_case import plan_case
from apply_service.evaluate.contenders.pipeline import PipelineContender
from apply_service.prompts.profile import load_profile

CASES = list(read_cases(case_file("short_edits")))
LIMITS = PipelineLimits(max_file_bytes=20_000, max_draft_tokens=64)


class Contest:
    """A contender over an oracle that is told which case comes."""

    def __init__(self, oracle: CorruptingOracle, contender: PipelineContender) -> None:
        self.oracle = oracle
        self._contender = contender

    def answer(self, case: Case) -> CaseAnswer:
        self.oracle.begin(case)
        return self._contender.answer(case)


@contextmanager
def contest(
    model_dir: Path, *, share: float, has_fallback: bool = True, use_model: UseModel = "always"
) -> Iterator[Contest]:
    oracle = CorruptingOracle(load_profile("embedded", model_dir), share=share)
    contender = PipelineContender(
        oracle.load(), LIMITS, has_fallback=has_fallback, use_model=use_model
    )
    try:
        yield Contest(oracle, contender)
    finally:
        contender.close()


def test_a_model_that_is_right_gives_exact_answers(tiny_model_dir: Path) -> None:
    with contest(tiny_model_dir, share=0.0) as run:
        for case in CASES:
            answer = run.answer(case)
            assert answer.text == case.expected
            assert answer.status in ("applied", "needs_review")
            assert answer.seconds > 0
            assert set(run.oracle.kinds) <= {None}


def test_without_fallback_corrupted_answers_are_what_is_judged(tiny_model_dir: Path) -> None:
    with contest(tiny_model_dir, share=1.0, has_fallback=False) as run:
        answers = [(run.answer(case), list(run.oracle.kinds)) for case in CASES]
    corrupted = [answer for answer, kinds in answers if kinds and None not in kinds]
    assert len(corrupted) > len(CASES) / 2
    assert {answer.source for answer in corrupted} == {"model"}
    assert any(answer.status in ("rejected", "needs_review") for answer in corrupted)


def test_with_fallback_more_answers_are_right(tiny_model_dir: Path) -> None:
    num_exact = {}
    for has_fallback in (True, False):
        with contest(tiny_model_dir, share=1.0, has_fallback=has_fallback) as run:
            num_exact[has_fallback] = sum(run.answer(case).text == case.expected for case in CASES)
    assert num_exact[True] > num_exact[False]


def test_the_default_asks_the_model_only_where_a_choice_is_open(tiny_model_dir: Path) -> None:
    with contest(tiny_model_dir, share=0.0, use_model="auto") as run:
        answers = {case.id: run.answer(case) for case in CASES}
    sources = {
        case.id: "merge" if plan_case(case).is_certain else answers[case.id].source
        for case in CASES
    }
    assert {name: answer.source for name, answer in answers.items()} == sources
    assert {answer.text for answer in answers.values()} == {case.expected for case in CASES}


def test_line_endings_are_part_of_the_answer(tiny_model_dir: Path) -> None:
    case = msgspec.structs.replace(
        CASES[0],
        original=CASES[0].original.replace("\n", "\r\n"),
        expected=CASES[0].expected.replace("\n", "\r\n"),
    )
    with contest(tiny_model_dir, share=0.0) as run:
        assert run.answer(case).text == case.expected


def test_a_refusal_is_rejected_and_a_limit_has_failed(tiny_model_dir: Path) -> None:
    empty = msgspec.structs.replace(CASES[0], update="\n")
    large = msgspec.structs.replace(CASES[0], original="x = 1\n" * 4000)
    with contest(tiny_model_dir, share=0.0) as run:
        refused, failed = run.answer(empty), run.answer(large)
    assert refused.status == "rejected"
    assert failed.status == "failed"
    assert "20000" in failed.notes[0]
