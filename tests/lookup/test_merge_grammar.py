"""The grammar accepts exactly the valid merges; looking ahead is right and changes nothing."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.edits.brute_grammar import Answer, next_tokens, weighed_merges
from oracles.edits.small_rules import small_rules

from lookup.constraint import (
    ConstrainedDraft,
    Constraint,
    InvalidRulesError,
    TokenNotAllowedError,
)
from lookup.merge_automaton import Position
from lookup.merge_grammar import MergeGrammar
from lookup.merge_rules import MergeRules, MergeText

CLOSE = 99
LONG_LIMIT = 10_000


def grammar_of(rules: MergeRules) -> tuple[MergeGrammar, dict[Answer, float]]:
    """The grammar and all valid answers."""
    return MergeGrammar(rules), weighed_merges(rules)


def heaviest_of(answers: dict[Answer, float], prefix: Answer) -> float:
    return max(w for answer, w in answers.items() if answer[: len(prefix)] == prefix)


def forced_by(answers: list[Answer], prefix: Answer) -> Answer:
    """What must follow `prefix`, up to the first choice between tokens or to end and go on."""
    written = prefix
    while written not in answers and len(following := next_tokens(answers, written)) == 1:
        written += following
    return written[len(prefix) :]


def grammar_with(*texts: MergeText, end: Answer = (CLOSE,)) -> MergeGrammar:
    return MergeGrammar(MergeRules(texts=texts, end_token_ids=end))


@given(rules=small_rules())
@settings(max_examples=300, deadline=None)
def test_after_every_prefix_the_next_tokens_are_those_of_the_valid_merges(
    rules: MergeRules,
) -> None:
    grammar, answers = grammar_of(rules)
    states: dict[Answer, Position] = {(): grammar.snapshot()}
    pending: list[Answer] = [()]
    while pending:
        prefix = pending.pop()
        grammar.restore(states[prefix])
        allowed = grammar.allowed_next()
        assert allowed == next_tokens(list(answers), prefix)
        assert grammar.is_complete == (prefix in answers)
        for token in allowed:
            grammar.restore(states[prefix])
            grammar.advance(token)
            states[(*prefix, token)] = grammar.snapshot()
            pending.append((*prefix, token))
        for token in {0, 1, 2, 9, 7} - set(allowed):
            grammar.restore(states[prefix])
            with pytest.raises(TokenNotAllowedError):
                grammar.advance(token)
            assert grammar.snapshot() is states[prefix]


@given(rules=small_rules(), pick=st.randoms(use_true_random=False))
@settings(max_examples=300, deadline=None)
def test_forced_runs_are_forced_and_drafts_follow_the_heaviest_merge(
    rules: MergeRules, pick: Random
) -> None:
    grammar, answers = grammar_of(rules)
    chosen = sorted(answers)[pick.randrange(len(answers))]
    for size in range(len(chosen) + 1):
        prefix = chosen[:size]
        run = forced_by(list(answers), prefix)
        assert grammar.forced_run() == list(run)
        assert grammar.forced_run(2) == list(run[:2])
        before = grammar.snapshot()
        whole = grammar.draft()
        assert whole.is_complete
        assert answers[prefix + whole.token_ids] == heaviest_of(answers, prefix)
        check_draft(whole, list(answers), prefix)
        for limit in (0, 1, 3, LONG_LIMIT):
            cut = grammar.draft(limit)
            assert cut.token_ids == whole.token_ids[:limit]
            check_draft(cut, list(answers), prefix)
        assert grammar.snapshot() is before
        if size < len(chosen):
            grammar.advance(chosen[size])


@given(
    rules=small_rules(), scale=st.sampled_from([0.5, 3.0]), pick=st.randoms(use_true_random=False)
)
@settings(max_examples=200, deadline=None)
def test_the_prior_of_a_token_is_the_scaled_weight_of_its_heaviest_merge(
    rules: MergeRules, scale: float, pick: Random
) -> None:
    _, answers = grammar_of(rules)
    grammar = MergeGrammar(replace(rules, prior_scale=scale))
    chosen = sorted(answers)[pick.randrange(len(answers))]

    def expected(prefix: Answer, token_ids: Answer) -> list[float]:
        heaviest = [heaviest_of(answers, (*prefix, token)) for token in token_ids]
        return [scale * (weight - max(heaviest)) for weight in heaviest]

    for size in range(len(chosen)):
        prefix = chosen[:size]
        assert list(grammar.log_prior()) == pytest.approx(expected(prefix, grammar.allowed_next()))
        draft = grammar.draft()
        for row in draft.decisions:
            written = prefix + draft.token_ids[: row.offset]
            assert list(row.log_prior) == pytest.approx(expected(written, row.allowed_token_ids))
        grammar.advance(chosen[size])


def check_draft(draft: ConstrainedDraft, answers: list[Answer], prefix: Answer) -> None:
    """Its rows are the positions with a choice, and what stands between them is forced."""
    rows = {row.offset: row.allowed_token_ids for row in draft.decisions}
    for offset in range(len(draft) + 1):
        written = prefix + draft.token_ids[:offset]
        allowed = next_tokens(answers, written)
        has_choice = len(allowed) > 1 or (bool(allowed) and written in answers)
        assert rows.get(offset) == (allowed if has_choice else None)
    assert draft.num_forced == min([*rows, len(draft)])
    assert draft.is_complete <= (prefix + draft.token_ids in answers)
    assert not set(draft.border_offsets) & set(rows)
    assert all(0 <= offset < len(draft) for offset in draft.border_offsets)


@given(rules=small_rules(), splits=st.lists(st.integers(1, 6), max_size=20))
@settings(max_examples=200, deadline=None)
def test_runs_of_any_length_lead_where_single_tokens_lead(
    rules: MergeRules, splits: list[int]
) -> None:
    grammar, answers = grammar_of(rules)
    for answer in sorted(answers)[:10]:
        stepped, in_runs = MergeGrammar(rules), MergeGrammar(rules)
        offset = 0
        for length in [*splits, len(answer)]:
            run = answer[offset : offset + length]
            for token in run:
                stepped.advance(token)
            in_runs.advance_all(run)
            offset += len(run)
            assert in_runs.allowed_next() == stepped.allowed_next()
            assert in_runs.draft() == stepped.draft()
        assert in_runs.is_complete
        before = grammar.snapshot()
        with pytest.raises(TokenNotAllowedError):
            grammar.advance_all([*answer, 7])
        assert grammar.snapshot() is before


@given(rules=small_rules())
@settings(max_examples=200, deadline=None)
def test_the_text_chosen_is_the_heaviest_that_writes_the_answer(rules: MergeRules) -> None:
    grammar, answers = grammar_of(rules)
    start = grammar.snapshot()
    for answer, weight in answers.items():
        grammar.restore(start)
        grammar.advance_all(answer)
        text = rules.texts[grammar.chosen()]
        assert (*text.symbols, *rules.end_token_ids) == answer
        assert text.weight == weight


@given(rules=small_rules(), pick=st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_the_token_of_a_decision_stands_for_the_texts_that_go_on_with_it(
    rules: MergeRules, pick: Random
) -> None:
    grammar, answers = grammar_of(rules)
    answer = sorted(answers)[pick.randrange(len(answers))]
    grammar.advance_all(answer)
    for decision in grammar.decisions(answer):
        assert decision.chosen_token_id == answer[decision.offset]
        alternatives = dict(decision.alternatives)
        assert grammar.chosen() in alternatives[decision.chosen_token_id]
        for token, texts in alternatives.items():
            wanted = (*answer[: decision.offset], token)
            for number in texts:
                written = (*rules.texts[number].symbols, *rules.end_token_ids)
                assert written[: len(wanted)] == wanted


@given(rules=small_rules())
@settings(max_examples=100, deadline=None)
def test_borders_of_a_draft_are_those_of_texts_that_agree_so_far(rules: MergeRules) -> None:
    grammar, _ = grammar_of(rules)
    draft = grammar.draft()
    forced = set(range(len(draft))) - {row.offset for row in draft.decisions}
    expected = {
        place
        for place in forced
        for text in rules.texts
        if place in text.borders
        and (*text.symbols, *rules.end_token_ids)[:place] == draft.token_ids[:place]
        and grammar_keeps(rules, text)
    }
    assert set(draft.border_offsets) == expected


def grammar_keeps(rules: MergeRules, text: MergeText) -> bool:
    """Of equal texts the borders of the heaviest count, the first of equals."""
    same = [one for one in rules.texts if tuple(one.symbols) == tuple(text.symbols)]
    return text is max(same, key=lambda one: one.weight)


def test_two_places_are_one_decision_with_the_texts_of_each_token() -> None:
    head, tail = (0, 11, 12, 0), (31, 32)
    grammar = grammar_with(
        MergeText(symbols=(*head, 70, 71, 0, *tail), weight=1.0, borders=(4, 6)),
        MergeText(symbols=(*head, *tail, 0, 70, 71), weight=2.0, borders=(7, 9)),
    )
    assert grammar.forced_run() == list(head)
    grammar.advance_all(head)
    assert grammar.allowed_next() == (31, 70)
    draft = grammar.draft()
    assert draft.token_ids == (31, 32, 0, 70, 71, CLOSE)
    assert [row.allowed_token_ids for row in draft.decisions] == [(31, 70)]
    assert draft.border_offsets == (3, 5)
    grammar.advance(70)
    assert grammar.chosen() == 0
    assert grammar.forced_run() == [71, 0, *tail, CLOSE]
    (decision,) = grammar.decisions([*head, 70])
    assert (decision.offset, decision.chosen_token_id) == (4, 70)
    assert dict(decision.alternatives) == {31: (1,), 70: (0,)}


def test_a_text_that_begins_another_one_is_a_decision_at_its_end() -> None:
    grammar = grammar_with(MergeText(symbols=(1,)), MergeText(symbols=(1, 2), weight=1.0), end=())
    assert grammar.forced_run() == [1]
    grammar.advance(1)
    assert grammar.is_complete
    assert grammar.allowed_next() == (2,)
    assert grammar.chosen() == 0
    grammar.advance(2)
    assert grammar.chosen() == 1


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (MergeRules(texts=()), "no text"),
        (MergeRules(texts=(MergeText(symbols=(0,)),), prior_scale=-1.0), "prior_scale is -1.0"),
        (MergeRules(texts=(MergeText(symbols=(0,)),), prior_scale=math.inf), "prior_scale is inf"),
        (
            MergeRules(texts=(MergeText(symbols=(0,), weight=float("nan")),)),
            "text 0 weighs nan; weights must be finite",
        ),
    ],
)
def test_rules_that_make_no_sense_are_refused(rules: MergeRules, message: str) -> None:
    with pytest.raises(InvalidRulesError, match=message):
        MergeGrammar(rules)


def test_a_refused_token_is_named_with_those_allowed() -> None:
    grammar = grammar_with(MergeText(symbols=(0, 5)))
    with pytest.raises(TokenNotAllowedError, match=r"token 6, number 1 of 2.*allowed there: 5"):
        grammar.advance_all([0, 6])


def test_a_single_text_is_forced_to_the_end() -> None:
    grammar: Constraint[Position] = grammar_with(MergeText(symbols=(0, 1) * 5_000))
    run = grammar.forced_run()
    assert run == [0, 1] * 5_000 + [CLOSE]
    grammar.advance_all(run)
    assert grammar.is_complete
    assert grammar.allowed_next() == ()
