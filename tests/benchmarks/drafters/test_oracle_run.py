"""The oracle writes the truth through the engine's scheduler, and counts as the engine does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from engine_runs import ScriptedProposer

from batching.config import SchedulerConfig
from batching.request import EngineRequest, SamplingParams
from benchmarks.drafters.oracle_run import TruthLostError, run_oracle
from lookup.byte_merge_grammar import ByteMergeGrammar
from lookup.merge_grammar import MergeGrammar
from lookup.merge_rules import MergeRules, MergeText
from lookup.vocabulary_index import VocabularyIndex

STOP = 99
CONFIG = SchedulerConfig(max_tokens_per_step=40, max_draft_tokens=8)
REQUEST = EngineRequest(
    request_id="one",
    prompt_token_ids=tuple(range(100, 200)),
    sampling=SamplingParams(max_tokens=200, stop_token_ids=frozenset([STOP])),
    max_draft_tokens=8,
)


LINES = [(10, 20 + number) for number in range(20)]
END = (10, STOP)


def two_places(first: int, second: int) -> MergeRules:
    """Twenty lines, and one new line that may stand at either place."""
    answers = [answer_of(place) for place in (first, second)]
    texts = [MergeText(symbols=answer[: -len(END)]) for answer in answers]
    return MergeRules(texts=texts, end_token_ids=END)


def answer_of(place: int) -> list[int]:
    lines = [*LINES[:place], (10, 50), *LINES[place:], END]
    return [token_id for line in lines for token_id in line]


def test_speculation_takes_the_passes_that_drafts_and_prompt_need() -> None:
    truth = [*range(27), STOP]
    right = run_oracle(
        replace(REQUEST, proposer=ScriptedProposer(truth)), truth, scheduler_config=CONFIG
    )
    assert right.token_ids == tuple(truth)
    # 100 tokens of prompt in steps of 40; the last of them drafts too, and each step writes 9.
    assert (right.stats.target_passes, right.num_asking_passes) == (6, 4)
    wrong = [*truth[:3], 50, *truth[4:]]
    corrected = run_oracle(
        replace(REQUEST, proposer=ScriptedProposer(wrong)), truth, scheduler_config=CONFIG
    )
    assert corrected.token_ids == tuple(truth)
    assert (corrected.stats.drafted, corrected.stats.accepted) == (30, 24)
    plain = run_oracle(REQUEST, truth, scheduler_config=CONFIG)
    assert plain.num_asking_passes == len(truth)


@pytest.mark.parametrize("place", [5, 15])
def test_a_constraint_asks_at_its_decisions_alone(place: int) -> None:
    rules = two_places(5, 15)
    truth = answer_of(place)
    found = run_oracle(
        replace(REQUEST, constraint=MergeGrammar(rules)), truth, scheduler_config=CONFIG
    )
    assert found.token_ids == tuple(truth)
    assert (found.num_decisions, found.num_asking_passes) == (1, 1)
    assert found.stats.forced == len(truth) - 1


def test_a_truth_that_is_no_path_is_said_to_be_lost() -> None:
    rules = two_places(5, 15)
    for place in (4, 6):
        request = replace(REQUEST, constraint=MergeGrammar(rules))
        with pytest.raises(TruthLostError):
            run_oracle(request, answer_of(place), scheduler_config=CONFIG)
    short = answer_of(5)[:-1]
    with pytest.raises(TruthLostError):
        run_oracle(replace(REQUEST, constraint=MergeGrammar(rules)), short, scheduler_config=CONFIG)


def test_a_truth_in_other_tokens_is_followed_by_its_bytes() -> None:
    vocabulary = VocabularyIndex([b"", *(bytes([byte]) for byte in range(1, 128)), b"ab", b"b\n"])
    rules = MergeRules(
        texts=[MergeText(symbols=text) for text in (b"\nab\nx\nab\nab", b"\nab\nab\nx\nab")]
    )
    grammar = ByteMergeGrammar(
        rules, vocabulary, encode=vocabulary.longest_matches, end_token_ids=(0,)
    )
    text = b"\nab\nab\nx\nab"
    truth = [*text, 0]

    def spell(token_id: int) -> tuple[int, ...]:
        return tuple(vocabulary.bytes_of(token_id)) or (-1 - token_id,)

    found = run_oracle(
        replace(REQUEST, constraint=grammar), truth, scheduler_config=CONFIG, spell=spell
    )
    assert b"".join(map(vocabulary.bytes_of, found.token_ids)) == text
    assert len(found.token_ids) < len(truth)
    assert found.num_decisions >= 1
