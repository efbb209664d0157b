"""Models whose tokens span lines, bound to the valid merges: every answer is one of them.

The tokenizer is trained without regard to lines, so that tokens cross borders and decisions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest
from case_files import case_file
from engine_runs import Outcome, RunningEngine, running_engine
from oracles.edits.brute_grammar import weighed_merges
from tiny_model import SPECIAL_TOKENS, write_tiny_model
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from apply_service.apply.merge_constraint import MergeConstraint, try_constrain
from apply_service.apply.planning.edit_plan import EditPlan
from apply_service.apply.run import ApplyPipeline, PipelineLimits
from apply_service.config import Settings
from apply_service.edit.regions import Region
from apply_service.evaluate.cases.case_file import Case, read_cases
from apply_service.evaluate.cases.planned_case import edit_of_case, plan_case
from apply_service.models.loading import load_served_model
from apply_service.prompts.profile import Prompt, PromptRequest, load_profile
from batching.async_engine import AsyncEngine
from batching.config import EngineConfig, SchedulerConfig
from batching.request import EngineRequest, SamplingParams

CASES = case_file("agent_written")
PROFILES = ("chat", "fastapply")
MAX_CHARACTERS = 600
NUM_CASES = 3
VOCABULARY_SIZE = 700

# The same lines above and below, so that the new one may stand in many places.
HANDLERS = [f"def handle_{name}(event):\n    check(event)\n    return True\n\n" for name in "abcd"]
AMBIGUOUS = Case(
    id="ambiguous",
    path="handlers.py",
    original="".join(HANDLERS),
    update="# ... existing code ...\n    check(event)\n    log(event, 'é')\n    return True\n\n"
    "# ... existing code ...\n",
    expected="",
)


@dataclass(frozen=True)
class BoundCase:
    """A case in one profile's tokens, with its constraint."""

    name: str
    prompt: Prompt
    constraint: MergeConstraint

    def request(self, *, k: int, temperature: float) -> EngineRequest:
        """A request with a cache of its own."""
        kind = f"{self.name}-{k}-{temperature}"
        return EngineRequest(
            request_id=kind,
            prompt_token_ids=tuple(self.prompt.token_ids),
            sampling=SamplingParams(max_tokens=3000, temperature=temperature, seed=5),
            constraint=self.constraint.grammar(),
            max_draft_tokens=k,
            cache_salt=kind.encode(),
        )


def trained_tokenizer(texts: Sequence[str]) -> Tokenizer:
    """Byte-level BPE over whole texts: nothing is split before it is merged."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE,
        show_progress=False,
        special_tokens=[AddedToken(token, special=True) for token in SPECIAL_TOKENS],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        max_token_length=12,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tiny-bpe-model")
    texts = [case.original for case in read_cases(CASES)][:60]
    write_tiny_model(path, seed=3, tokenizer=trained_tokenizer([*texts, AMBIGUOUS.original]))
    return path


@pytest.fixture(scope="module")
def running(model_dir: Path) -> Iterator[RunningEngine]:
    config = EngineConfig(
        model_path=model_dir,
        kv_memory_bytes=16 << 20,
        scheduler=SchedulerConfig(max_tokens_per_step=256),
    )
    with running_engine(config) as running:
        yield running


def plans() -> Iterator[tuple[Case, EditPlan]]:
    """Small edits; the first of them can be made in several ways."""
    found = [AMBIGUOUS, *read_cases(CASES)]
    for case in found:
        plan = plan_case(case).plan
        is_small = len(case.original) < MAX_CHARACTERS
        if is_small and plan is not None and plan.merge is not None and plan.decision is None:
            yield case, plan


@cache
def bound_cases(model_dir: Path, profile_name: str) -> tuple[BoundCase, ...]:
    """Cases with several valid merges."""
    profile = load_profile(profile_name, model_dir)
    found = []
    for case, plan in plans():
        assert plan.merge is not None
        prompt = profile.build(PromptRequest(plan.original_lines, plan.update_lines, ()))
        constraint = try_constrain(plan.merge, Region(0, len(plan.original_lines)), prompt)
        if constraint is not None and len(constraint.texts) > 1:
            found.append(BoundCase(f"{profile_name}-{case.id}", prompt, constraint))
        if len(found) == NUM_CASES:
            break
    assert len(found) == NUM_CASES
    return tuple(found)


def run_all(
    running: RunningEngine, cases: Sequence[BoundCase], *, k: int, temperature: float
) -> list[Outcome]:
    return running.run([case.request(k=k, temperature=temperature) for case in cases])


@pytest.mark.parametrize("profile_name", PROFILES)
@pytest.mark.parametrize("temperature", [0.0, 2.0])
def test_every_answer_is_a_valid_merge_and_look_ahead_changes_none(
    running: RunningEngine, model_dir: Path, profile_name: str, temperature: float
) -> None:
    cases = bound_cases(model_dir, profile_name)
    plain = run_all(running, cases, k=0, temperature=temperature)
    ahead = run_all(running, cases, k=64, temperature=temperature)
    num_decisions = num_crossing = 0
    for case, slow, fast in zip(cases, plain, ahead, strict=True):
        assert slow.token_ids == fast.token_ids
        assert fast.finished.reason == "stop"
        layout, tokenizer = case.prompt.layout, case.prompt.tokenizer
        assert fast.token_ids[-1] == case.prompt.end_token_ids[-1]
        text = tokenizer.decode_bytes(fast.token_ids[:-1])
        skipped = b"\n" if layout.newline == "between" else b""
        assert text.startswith(layout.opening.encode())
        merge = skipped + text.removeprefix(layout.opening.encode())
        assert merge in set(map(bytes, weighed_merges(case.constraint.rules)))
        evidence = [
            {row.position: row.allowed_token_ids for row in run.finished.evidence}
            for run in (slow, fast)
        ]
        assert evidence[0] == evidence[1]
        made = case.constraint.grammar().decisions(fast.token_ids)
        asked = [row.position for row in fast.finished.evidence if row.is_decision]
        assert [decision.offset for decision in made] == asked
        assert fast.finished.stats.target_passes < len(fast.token_ids) / 4
        num_decisions += len(made)
        spelled = [tokenizer.decode_bytes([token_id]) for token_id in fast.token_ids[:-1]]
        num_crossing += sum(b"\n" in token.strip(b"\n") for token in spelled)
    assert num_decisions > NUM_CASES
    assert num_crossing > NUM_CASES, "tokens span lines"


@pytest.mark.parametrize("profile_name", PROFILES)
def test_the_service_reads_such_answers(model_dir: Path, profile_name: str) -> None:
    settings = Settings(
        model=str(model_dir), profile=profile_name, threads=1, kv_memory=16 << 20, device="cpu"
    )
    loaded = load_served_model(settings, report=lambda _stage: None)
    assert "merge" in loaded.profile.constraints

    async def run_all() -> None:
        engine = AsyncEngine(loaded.engine)
        engine.start()
        limits = PipelineLimits(max_file_bytes=20_000, max_draft_tokens=64)
        pipeline = ApplyPipeline.on_engine(engine, loaded.profile, limits)
        num_decisions = 0
        try:
            for (case, plan), _ in zip(plans(), range(NUM_CASES), strict=False):
                assert plan.merge is not None
                edit = edit_of_case(case, has_fallback=False, constraint="merge")
                outcome = await pipeline.apply(replace(edit, scope="file"))
                assert (outcome.source, outcome.confidence is None) == ("model", False)
                assert plan.merge.number_of(outcome.lines) is not None
                for decision in outcome.decisions:
                    assert decision.chosen.text == [*outcome.lines, ""][decision.line - 1]
                num_decisions += len(outcome.decisions)
        finally:
            await engine.stop()
        assert num_decisions > 0

    asyncio.run(run_all())


@pytest.mark.parametrize("profile_name", PROFILES)
def test_the_canonical_tokens_of_every_merge_go_along(model_dir: Path, profile_name: str) -> None:
    for case in bound_cases(model_dir, profile_name)[:3]:
        prompt, form = case.prompt, case.constraint.form
        weighed = weighed_merges(case.constraint.rules)
        heaviest: list[list[int]] = []
        for merge, weight in weighed.items():
            token_ids = [*prompt.answer_token_ids(lines_of(merge, prompt)), *prompt.end_token_ids]
            assert form.symbol_starts(token_ids)[len(token_ids) - 1] == len(merge)
            grammar = case.constraint.grammar()
            grammar.advance_all(token_ids)
            assert grammar.is_complete
            if weight == max(weighed.values()):
                heaviest.append(token_ids)
        assert list(case.constraint.grammar().draft().token_ids) in heaviest


def lines_of(merge: Sequence[int], prompt: Prompt) -> list[str]:
    """The lines of a merge in the symbols of its rules."""
    document = bytes(merge).decode().removesuffix(prompt.layout.closing)
    if prompt.layout.newline == "last":
        return document.split("\n")[:-1]
    return document.split("\n")[1:]
