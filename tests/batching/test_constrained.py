"""Answers under a constraint are valid, and the same with and without look-ahead."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from engine_runs import Outcome, RunningEngine, running_engine

from batching.config import EngineConfig, SchedulerConfig
from batching.request import EngineRequest, SamplingParams
from lookup.merge_grammar import MergeGrammar
from lookup.merge_rules import MergeRules, MergeText

NUM_CASES = 40
NEWLINE, END = 13, (13, 60, 2)
KV_BYTES = 4 << 20
Line = tuple[int, ...]


@pytest.fixture(scope="module")
def running(tiny_model_dir: Path) -> Iterator[RunningEngine]:
    config = EngineConfig(model_path=tiny_model_dir, kv_memory_bytes=KV_BYTES)
    with running_engine(config) as running:
        yield running


def make_rules(seed: int) -> MergeRules:
    """Up to eight versions of a text of up to 60 lines with repeated ones."""
    generator = random.Random(seed)
    lines = [
        (NEWLINE, *(generator.randrange(3, 259) for _ in range(generator.randrange(0, 12))))
        for _ in range(8)
    ]
    original = [generator.choice(lines) for _ in range(generator.randrange(1, 60))]
    new = [(generator.choice(lines), (NEWLINE, generator.randrange(3, 259))) for _ in range(3)]
    texts = []
    for _ in range(generator.randint(1, 8)):
        text: list[Line] = list(original)
        borders = []
        for one in generator.sample(new, generator.randint(0, 2)):
            start = generator.randrange(0, len(text) + 1)
            text[start : start + generator.randrange(0, 3)] = one
            borders.append(sum(map(len, text[:start])))
        texts.append(
            MergeText(
                symbols=tuple(token for line in text for token in line),
                weight=generator.uniform(-2, 2),
                borders=sorted(set(borders)),
            )
        )
    return MergeRules(texts=texts, end_token_ids=END, prior_scale=generator.choice([0.0, 0.2, 2.0]))


def make_request(
    case: int, *, k: int, temperature: float = 0.0, max_tokens: int = 1200
) -> EngineRequest | None:
    generator = random.Random(1000 + case)
    prompt = tuple(generator.randrange(3, 259) for _ in range(generator.choice([5, 40, 300])))
    try:
        grammar = MergeGrammar(make_rules(case))
    except ValueError:
        return None
    return EngineRequest(
        request_id=f"case-{case}-{k}-{temperature}",
        prompt_token_ids=prompt,
        sampling=SamplingParams(max_tokens=max_tokens, temperature=temperature, seed=case),
        constraint=grammar,
        max_draft_tokens=k,
        cache_salt=f"{case}-{k}-{temperature}".encode(),
    )


def run_all(
    running: RunningEngine,
    *,
    k: int,
    batch: int,
    temperature: float = 0.0,
    num_cases: int = NUM_CASES,
) -> dict[int, Outcome]:
    made = {
        case: request
        for case in range(num_cases)
        if (request := make_request(case, k=k, temperature=temperature)) is not None
    }
    cases = list(made)
    outcomes: dict[int, Outcome] = {}
    for start in range(0, len(cases), batch):
        group = cases[start : start + batch]
        found = running.run([made[case] for case in group])
        outcomes.update(zip(group, found, strict=True))
    return outcomes


@pytest.mark.parametrize("temperature", [0.0, 1.5])
@pytest.mark.parametrize("num_cases", [12, pytest.param(NUM_CASES, marks=pytest.mark.slow)])
def test_look_ahead_changes_no_token_and_no_evidence(
    running: RunningEngine, temperature: float, num_cases: int
) -> None:
    plain, alone, together = (
        run_all(running, k=k, batch=batch, temperature=temperature, num_cases=num_cases)
        for k, batch in ((0, 8), (64, 1), (64, 8))
    )
    assert len(plain) > num_cases // 2
    for case, outcome in plain.items():
        for other in (alone[case], together[case]):
            assert other.token_ids == outcome.token_ids, case
            assert other.finished.reason == outcome.finished.reason == "stop"
            evidence = {row.position: row for row in outcome.finished.evidence}
            assert {row.position for row in other.finished.evidence} == evidence.keys()
            for row in other.finished.evidence:
                same = evidence[row.position]
                assert row.allowed_token_ids == same.allowed_token_ids
                assert row.token_id == same.token_id
                assert row.log_prior == pytest.approx(same.log_prior)
                assert row.logprobs == pytest.approx(same.logprobs, abs=1e-3)
                assert row.outside_mass == pytest.approx(same.outside_mass, abs=1e-3)
    passes = [
        sum(outcome.finished.stats.target_passes for outcome in run.values())
        for run in (plain, alone)
    ]
    assert 10 * passes[1] < passes[0]


@pytest.mark.parametrize("case", [42, 108])
def test_a_decision_guessed_wrong_behind_one_guessed_right_is_not_forced(
    running: RunningEngine, case: int
) -> None:
    request = make_request(case, k=8)
    assert request is not None
    (outcome,) = running.run([request])
    decisions = MergeGrammar(make_rules(case)).decisions(outcome.token_ids)
    stats = outcome.finished.stats
    assert 0 < stats.accepted < stats.drafted
    assert stats.forced + len(decisions) == stats.num_output_tokens


def test_every_answer_is_valid_and_its_decisions_are_in_the_evidence(
    running: RunningEngine,
) -> None:
    for case, outcome in run_all(running, k=8, batch=8).items():
        grammar = MergeGrammar(make_rules(case))
        decisions = grammar.decisions(outcome.token_ids)
        grammar.advance_all(outcome.token_ids)
        assert grammar.is_complete
        asked = [row for row in outcome.finished.evidence if row.is_decision]
        assert [row.position for row in asked] == [decision.offset for decision in decisions]
        assert [row.token_id for row in asked] == [d.chosen_token_id for d in decisions]
        stats = outcome.finished.stats
        assert stats.num_output_tokens == len(outcome.token_ids)
        assert stats.forced + len(decisions) == stats.num_output_tokens
        for row in outcome.finished.evidence:
            inside = sum(map(math.exp, row.logprobs))
            assert inside + row.outside_mass == pytest.approx(1.0, abs=1e-4)
            assert len(row.allowed_token_ids) > 1 or not row.is_decision


def test_a_greedy_decision_takes_the_likeliest_allowed_token_after_the_prior(
    running: RunningEngine,
) -> None:
    num_turned = 0
    for case, outcome in run_all(running, k=64, batch=8).items():
        has_prior = make_rules(case).prior_scale > 0
        for row in outcome.finished.evidence:
            assert len(row.log_prior) == (len(row.logprobs) if has_prior and row.is_decision else 0)
            prior = row.log_prior or (0.0,) * len(row.logprobs)
            scores = [sum(pair) for pair in zip(row.logprobs, prior, strict=True)]
            taken = row.allowed_token_ids.index(row.token_id)
            assert scores[taken] == pytest.approx(max(scores), abs=1e-5)
            num_turned += row.logprobs[taken] < max(row.logprobs)
    assert num_turned > 0, "somewhere the prior outweighs the model"


def test_preemption_and_a_small_budget_change_nothing(
    running: RunningEngine, tiny_model_dir: Path
) -> None:
    plain = run_all(running, k=64, batch=1)
    tight = EngineConfig(
        model_path=tiny_model_dir,
        kv_memory_bytes=running.engine.model_info.kv_bytes_per_token * 1600,
        scheduler=SchedulerConfig(max_tokens_per_step=40, max_running=6),
    )
    with running_engine(tight) as small:
        crowded = run_all(small, k=64, batch=12)
        assert small.engine.stats().num_free_blocks == small.engine.stats().num_blocks
    for case, outcome in plain.items():
        assert crowded[case].token_ids == outcome.token_ids
        rows = [row.position for row in outcome.finished.evidence]
        assert [row.position for row in crowded[case].finished.evidence] == rows


def test_a_limit_ends_a_constrained_answer_too(running: RunningEngine) -> None:
    request = make_request(3, k=64, max_tokens=4)
    assert request is not None
    (outcome,) = running.run([request])
    assert outcome.finished.reason == "length"
    assert len(outcome.token_ids) == 4


def test_an_answer_without_a_choice_is_not_computed(running: RunningEngine) -> None:
    only = MergeText(symbols=(NEWLINE, 5, 6, NEWLINE, 7))
    rules = MergeRules(texts=[only], end_token_ids=END)
    request = EngineRequest(
        request_id="certain",
        prompt_token_ids=(5, 6, 7),
        sampling=SamplingParams(max_tokens=100),
        constraint=MergeGrammar(rules),
    )
    (outcome,) = running.run([request])
    assert outcome.token_ids == [NEWLINE, 5, 6, NEWLINE, 7, *END]
    assert outcome.finished.stats.target_passes == 0
    assert outcome.finished.stats.forced == len(outcome.token_ids)


def test_decisions_near_each_other_are_verified_in_one_pass(running: RunningEngine) -> None:
    texts = []
    for places in product((0, 1), repeat=3):
        lines = [(NEWLINE, 20 + number) for number in range(6)]
        for group, place in reversed(list(enumerate(places))):
            lines.insert(2 * group + place, (NEWLINE, 100 + group))
        symbols = tuple(token for line in lines for token in line)
        texts.append(MergeText(symbols=symbols, weight=50.0 * places.count(0)))
    rules = MergeRules(texts=texts, end_token_ids=END, prior_scale=1.0)
    outcomes = []
    for k in (0, 64):
        request = EngineRequest(
            request_id=f"near-{k}",
            prompt_token_ids=(5, 6, 7),
            sampling=SamplingParams(max_tokens=100),
            constraint=MergeGrammar(rules),
            max_draft_tokens=k,
        )
        outcomes += running.run([request])
    plain, ahead = outcomes
    assert ahead.token_ids == plain.token_ids
    decided = [row for row in ahead.finished.evidence if row.is_decision]
    assert len(decided) == 3
    stats = ahead.finished.stats
    assert (stats.drafted, stats.accepted) == (3, 3)
    assert stats.decode_passes == 1
