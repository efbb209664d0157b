"""The grammar accepts exactly the valid merges; looking ahead is right and changes nothing."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracles.edits.brute_grammar import Answer, next_tokens, weighed_merges
from oracles.edits.small_rules import small_rules

from lookup.constraint import (
    ConstrainedDraft,
    Constraint,
    InvalidRulesError,
    NoPathError,
    TokenNotAllowedError,
)
from lookup.merge_automaton import Threads
from lookup.merge_choices import MergeChoice
from lookup.merge_grammar import MergeGrammar
from lookup.merge_rules import GrammarPlacement, GrammarSegment, MergeRules

CLOSE = 99
LONG_LIMIT = 10_000


def grammar_of(rules: MergeRules) -> tuple[MergeGrammar, dict[Answer, float]]:
    """The grammar and all valid answers; the example is dropped if there are none."""
    answers = weighed_merges(rules)
    assume(len(answers) <= 400)
    if not answers:
        with pytest.raises(NoPathError):
            MergeGrammar(rules)
    assume(answers)
    return MergeGrammar(rules), answers


def heaviest_of(answers: dict[Answer, float], prefix: Answer) -> float:
    return max(w for answer, w in answers.items() if answer[: len(prefix)] == prefix)


def forced_by(answers: list[Answer], prefix: Answer) -> Answer:
    """What must follow `prefix`, up to the first choice between tokens or to end and go on."""
    written = prefix
    while written not in answers and len(following := next_tokens(answers, written)) == 1:
        written += following
    return written[len(prefix) :]


def tokens_of(line: int, size: int = 3) -> tuple[int, ...]:
    """A line of its own tokens, newline first."""
    return (0, *range(line * 10 + 1, line * 10 + size))


def one_segment(original: list[tuple[int, ...]], *placements: GrammarPlacement) -> MergeGrammar:
    return MergeGrammar(
        MergeRules(original=original, segments=[GrammarSegment(placements)], end_token_ids=(CLOSE,))
    )


@given(rules=small_rules())
@settings(max_examples=300, deadline=None)
def test_after_every_prefix_the_next_tokens_are_those_of_the_valid_merges(
    rules: MergeRules,
) -> None:
    grammar, answers = grammar_of(rules)
    states: dict[Answer, Threads] = {(): grammar.snapshot()}
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
def test_the_choices_behind_an_answer_write_that_answer(rules: MergeRules) -> None:
    grammar, answers = grammar_of(rules)
    start = grammar.snapshot()
    for answer, weight in list(answers.items())[:20]:
        grammar.restore(start)
        grammar.advance_all(answer)
        only = restricted(rules, grammar.chosen())
        assert answer in weighed_merges(only)
        assert weighed_merges(only)[answer] == weight


def restricted(rules: MergeRules, choices: tuple[MergeChoice, ...]) -> MergeRules:
    """The rules with nothing left but the chosen placements and the lines not left out."""
    segments = []
    for number, segment in enumerate(rules.segments):
        (taken,) = [c.placement for c in choices if c.segment == number and c.omitted_line is None]
        omitted = {c.omitted_line for c in choices if c.segment == number} - {None}
        placement = segment.placements[taken]
        for line in omitted:
            assert line is not None
            assert placement.optional is not None
            assert placement.optional[line]
        kept = [line for at, line in enumerate(placement.lines) if at not in omitted]
        weight = placement.weight + placement.omission_weight * len(omitted)
        segments.append(
            GrammarSegment(
                [
                    GrammarPlacement(
                        start=placement.start, end=placement.end, lines=kept, weight=weight
                    )
                ]
            )
        )
    return MergeRules(
        original=rules.original,
        segments=segments,
        removed=rules.removed,
        end_token_ids=rules.end_token_ids,
        is_ordered=rules.is_ordered,
    )


@given(rules=small_rules(max_segments=1), pick=st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_the_token_of_a_decision_stands_for_the_placement_that_is_taken_in_the_end(
    rules: MergeRules, pick: Random
) -> None:
    grammar, answers = grammar_of(rules)
    answer = sorted(answers)[pick.randrange(len(answers))]
    grammar.advance_all(answer)
    taken = set(grammar.chosen())
    for decision in grammar.decisions(answer):
        alternatives = dict(decision.alternatives)
        assert decision.chosen_token_id == answer[decision.offset]
        placements = [
            {choice for choice in choices if choice.omitted_line is None}
            for choices in alternatives.values()
        ]
        if any(placements):
            assert taken & set(alternatives[decision.chosen_token_id])
        if len(placements) > 1 and any(placements):
            assert any(placements[0] != other for other in placements[1:])


def test_two_places_are_one_decision_with_a_choice_for_each_token() -> None:
    original = [tokens_of(n) for n in (1, 2, 3)]
    grammar = one_segment(
        original,
        GrammarPlacement(start=1, end=1, lines=[(0, 70, 71)], weight=1.0),
        GrammarPlacement(start=2, end=2, lines=[(0, 70, 71)], weight=2.0),
    )
    assert grammar.forced_run() == [*tokens_of(1), 0]
    grammar.advance_all(grammar.forced_run())
    assert grammar.allowed_next() == (21, 70)
    assert grammar.alternatives(70) == (MergeChoice(0, 0),)
    assert grammar.alternatives(21) == (MergeChoice(0, 1),)
    assert grammar.alternatives(5) == ()
    draft = grammar.draft()
    assert draft.token_ids == (21, 22, 0, 70, 71, *tokens_of(3), CLOSE)
    assert [row.allowed_token_ids for row in draft.decisions] == [(21, 70)]
    grammar.advance(70)
    assert grammar.chosen() == (MergeChoice(0, 0),)
    assert grammar.forced_run() == [71, *tokens_of(2), *tokens_of(3), CLOSE]
    answer = [*tokens_of(1), 0, 70, 71, *tokens_of(2), *tokens_of(3), CLOSE]
    (decision,) = grammar.decisions(answer)
    assert (decision.offset, decision.chosen_token_id) == (4, 70)
    assert dict(decision.alternatives) == {21: (MergeChoice(0, 1),), 70: (MergeChoice(0, 0),)}


def test_how_much_gives_way_is_decided_where_the_original_resumes() -> None:
    original = [tokens_of(n) for n in range(1, 6)]
    grammar = one_segment(
        original,
        GrammarPlacement(start=1, end=2, lines=[tokens_of(7)]),
        GrammarPlacement(start=1, end=4, lines=[tokens_of(7)]),
    )
    grammar.advance_all([*tokens_of(1), *tokens_of(7), 0])
    assert grammar.alternatives(31) == (MergeChoice(0, 0),)
    assert grammar.alternatives(51) == (MergeChoice(0, 1),)


def test_a_replacement_has_a_border_where_it_parts_from_the_original_and_where_it_returns() -> None:
    original = [tokens_of(n) for n in range(1, 6)]
    lines = [original[1], tokens_of(7), original[3]]
    grammar = one_segment(original, GrammarPlacement(start=1, end=4, lines=lines))
    draft = grammar.draft()
    entered = 3 + 3 + 1
    left = 3 + 3 + 3 + 1
    assert draft.border_offsets == (entered, left)
    assert draft.num_forced == len(draft) == 16
    grammar.advance_all(draft.token_ids[:entered])
    assert grammar.is_border
    grammar.advance(draft.token_ids[entered])
    assert not grammar.is_border


def test_an_insertion_is_left_at_the_second_token_of_the_line_that_follows() -> None:
    original = [tokens_of(n) for n in range(1, 4)]
    grammar = one_segment(original, GrammarPlacement(start=2, end=2, lines=[tokens_of(7)]))
    assert grammar.draft().border_offsets == (7, 10)


def test_a_deletion_has_one_border_and_no_change_none() -> None:
    original = [tokens_of(n) for n in range(1, 5)]
    cut = GrammarPlacement(start=0, end=3, lines=[original[0], original[2]])
    assert one_segment(original, cut).draft().border_offsets == (4,)
    same = GrammarPlacement(start=1, end=2, lines=[original[1]])
    assert one_segment(original, same).draft().border_offsets == ()


def test_a_segment_at_the_end_is_left_at_the_end_token() -> None:
    original = [tokens_of(1)]
    grammar = one_segment(original, GrammarPlacement(start=1, end=1, lines=[tokens_of(7)]))
    assert grammar.draft().border_offsets == (3, 6)
    assert grammar.draft().token_ids[6] == CLOSE


def test_equal_texts_from_different_placements_are_no_decision() -> None:
    original = [(0, 1), (0,), (0,), (0, 2)]
    places = [GrammarPlacement(start=n, end=n, lines=[(0,)], weight=n) for n in (1, 2, 3)]
    grammar = one_segment(original, *places)
    assert grammar.forced_run() == [0, 1, 0, 0, 0, 0, 2, CLOSE]
    grammar.advance_all(grammar.forced_run())
    assert grammar.chosen() == (MergeChoice(0, 2),)
    assert grammar.allowed_next() == ()


def test_an_optional_line_is_a_decision_that_weighs() -> None:
    def grammar(omission_weight: float) -> MergeGrammar:
        placement = GrammarPlacement(
            start=0,
            end=0,
            lines=[(0, 7), (0, 8)],
            optional=[True, False],
            omission_weight=omission_weight,
        )
        return one_segment([(0, 1)], placement)

    assert grammar(1.0).draft().token_ids == (0, 8, 0, 1, CLOSE)
    kept = grammar(-1.0)
    assert kept.draft().token_ids == (0, 7, 0, 8, 0, 1, CLOSE)
    kept.advance(0)
    assert kept.alternatives(8) == (MergeChoice(0, 0, omitted_line=0),)


def test_segments_far_apart_are_not_counted_in_every_order() -> None:
    original = [tokens_of(n) for n in range(1, 101)]
    segments = [
        GrammarSegment(
            [GrammarPlacement(start=at, end=at, lines=[(0, 5)]) for at in (first, first + 1)]
        )
        for first in range(0, 90, 3)
    ]
    grammar = MergeGrammar(MergeRules(original=original, segments=segments, is_ordered=False))
    assert grammar.draft().is_complete


def test_too_many_segments_in_any_order_are_refused() -> None:
    original = [tokens_of(n) for n in range(1, 101)]
    segment = GrammarSegment(
        [GrammarPlacement(start=at, end=at, lines=[(0, 5)]) for at in range(100)]
    )
    rules = MergeRules(original=original, segments=[segment] * 12, is_ordered=False)
    with pytest.raises(InvalidRulesError, match="12 segments with 1200 placements"):
        MergeGrammar(rules)
    ordered = MergeRules(original=original, segments=[segment] * 12)
    assert MergeGrammar(ordered).draft().is_complete


def test_segments_that_exclude_each_other_leave_no_path() -> None:
    original = [tokens_of(n) for n in range(4)]
    late = GrammarSegment([GrammarPlacement(start=2, end=4, lines=[(0, 5)])])
    early = GrammarSegment([GrammarPlacement(start=0, end=3, lines=[(0, 6)])])
    for is_ordered in (True, False):
        with pytest.raises(NoPathError, match="cannot all be placed"):
            MergeGrammar(
                MergeRules(original=original, segments=[late, early], is_ordered=is_ordered)
            )


@pytest.mark.parametrize(
    ("placement", "message"),
    [
        (GrammarPlacement(start=1, end=3, lines=[(0,)]), r"\[1, 3\) of segment 0 is not within"),
        (GrammarPlacement(start=1, end=0, lines=[(0,)]), "is not within"),
        (GrammarPlacement(start=0, end=0, lines=[()]), "a line without a token"),
        (GrammarPlacement(start=0, end=0, lines=[(0,)], weight=float("nan")), "must be finite"),
        (GrammarPlacement(start=0, end=0, lines=[(0,)], optional=[]), "0 flags for 1 lines"),
    ],
)
def test_placements_that_make_no_sense_are_refused(
    placement: GrammarPlacement, message: str
) -> None:
    with pytest.raises(InvalidRulesError, match=message):
        one_segment([(0, 1), (0, 2)], placement)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (MergeRules(original=[(0,), ()]), "line 1 of the original has no token"),
        (MergeRules(original=[(0,)], removed=[(0, 2)]), r"removed span \[0, 2\)"),
        (MergeRules(original=[(0,)], segments=[GrammarSegment([])]), "segment 0 has no placement"),
        (MergeRules(original=[(0,)], prior_scale=-1.0), "prior_scale is -1.0"),
        (MergeRules(original=[(0,)], prior_scale=math.inf), "prior_scale is inf"),
    ],
)
def test_rules_that_make_no_sense_are_refused(rules: MergeRules, message: str) -> None:
    with pytest.raises(InvalidRulesError, match=message):
        MergeGrammar(rules)


def test_a_refused_token_is_named_with_those_allowed() -> None:
    grammar = one_segment([(0, 1)], GrammarPlacement(start=0, end=1, lines=[(0, 5)]))
    with pytest.raises(TokenNotAllowedError, match=r"token 6, number 1 of 2.*allowed there: 5"):
        grammar.advance_all([0, 6])


def test_an_unchanged_original_is_forced_to_the_end() -> None:
    grammar: Constraint[Threads] = MergeGrammar(
        MergeRules(original=[(0, 1)] * 5_000, removed=[(0, 10)], end_token_ids=(CLOSE,))
    )
    run = grammar.forced_run()
    assert run == [0, 1] * 4_990 + [CLOSE]
    grammar.advance_all(run)
    assert grammar.is_complete
    assert grammar.allowed_next() == ()
