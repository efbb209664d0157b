"""Lookahead keeps what the model makes of guesses, and drafting shows it their rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from adversarial_drafters import TreeDrafter, engine_with_drafter
from drafter_oracle import make_target
from engine_runs import running_engine
from torch import Tensor

from batching.config import EngineConfig
from batching.drafters.drafter import (
    CANDIDATES,
    DraftAsk,
    Features,
    ObservedRequest,
    RefusedRow,
)
from batching.drafters.lookahead import LookaheadDrafter
from batching.drafters.target import TargetModel
from batching.recipes import EditDrafts
from batching.request import EngineRequest, SamplingParams
from lookup.proposer import Draft


@pytest.fixture(scope="module")
def tiny_target(tiny_model_dir: Path) -> TargetModel:
    return make_target(tiny_model_dir)


def candidates(*likeliest: int) -> Tensor:
    rows = torch.full((len(likeliest), 8), -1)
    rows[:, 0] = torch.tensor(likeliest)
    return rows


def drafted(drafter: LookaheadDrafter, token_ids: Sequence[int], request_id: str = "0") -> Draft:
    ask = DraftAsk(
        request_id=request_id,
        token_ids=token_ids,
        num_prompt_tokens=1,
        block_ids=(),
        sampling=SamplingParams(max_tokens=100),
        max_nodes=64,
        max_depth=8,
    )
    (draft,) = drafter.draft([ask])
    return draft


def observed(
    token_ids: Sequence[int], next_token_ids: Sequence[int], refused: Sequence[RefusedRow] = ()
) -> ObservedRequest:
    return ObservedRequest(
        request_id="0",
        rows=range(len(token_ids)),
        start=0,
        token_ids=token_ids,
        next_token_ids=next_token_ids,
        block_ids=(),
        refused=refused,
    )


def test_what_was_written_is_drafted_again(tiny_target: TargetModel) -> None:
    drafter = LookaheadDrafter(tiny_target)
    # The first row is one of a prompt.
    drafter.observe([observed([1, 2, 3, 4], [2, 3, 4, 5])], {CANDIDATES: candidates(-1, 3, 4, 5)})
    assert drafted(drafter, [9, 2]).token_ids == (3, 4, 5)
    assert not drafted(drafter, [9, 1]).token_ids
    assert not drafted(drafter, [9, 2], request_id="1").token_ids
    drafter.forget("0")
    assert not drafted(drafter, [9, 2]).token_ids


def test_what_follows_wrong_guesses_is_kept(tiny_target: TargetModel) -> None:
    drafter = LookaheadDrafter(tiny_target)
    # Behind 5 the guesses 7, 8, 9 and the side branch 6 were wrong; behind 7 the model says 8.
    refused = [RefusedRow(1, 7, 0), RefusedRow(2, 8, 1), RefusedRow(3, 9, 2), RefusedRow(4, 6, 0)]
    drafter.observe([observed([5], [10], refused)], {CANDIDATES: candidates(10, 8, 11, 12, 13)})
    assert drafted(drafter, [3, 7]).token_ids == (8, 11)
    assert drafted(drafter, [3, 9]).token_ids == (12,)
    assert drafted(drafter, [3, 6]).token_ids == (13,)
    assert drafted(drafter, [3, 5]).token_ids == (10,)


class WatchingDrafter(TreeDrafter):
    """Drafts any trees, and keeps what the model found likeliest behind each way of tokens."""

    taps: Sequence[int] = (CANDIDATES,)

    def __init__(self, answers: dict[str, list[int]]) -> None:
        super().__init__(answers, "random")
        self.seen: list[tuple[str, int, list[int], int]] = []

    def observe(self, requests: Sequence[ObservedRequest], features: Features) -> None:
        """Keep request, position of the first guess, guesses, and the token behind them."""
        likeliest = features[CANDIDATES][:, 0].tolist()
        for one in requests:
            ways: dict[int, tuple[int, list[int]]] = {
                row: (one.start + at + 1, []) for at, row in enumerate(one.rows)
            }
            for guess in one.refused:
                start, way = ways[guess.parent]
                ways[guess.row] = start, [*way, guess.token_id]
                self.seen.append((one.request_id, *ways[guess.row], likeliest[guess.row]))


def test_the_rows_of_guesses_are_theirs(tiny_model_dir: Path) -> None:
    config = EngineConfig(model_path=tiny_model_dir, kv_memory_bytes=4 << 20)

    def request(request_id: str, prompt: Sequence[int], max_tokens: int) -> EngineRequest:
        return EngineRequest(
            request_id=request_id,
            prompt_token_ids=tuple(prompt),
            sampling=SamplingParams(max_tokens=max_tokens),
            proposer=EditDrafts(original=(), snippet_segments=()),
        )

    prompts = {str(case): [5 + case, 9, 100 - case] for case in range(4)}
    with running_engine(config) as plain:
        outcomes = plain.run([request(name, prompts[name], 25) for name in prompts])
        answers = dict(zip(prompts, (one.token_ids for one in outcomes), strict=True))
        drafter = WatchingDrafter(answers)
        with engine_with_drafter(config, lambda _: drafter) as running:
            outcomes = running.run([request(name, prompts[name], 25) for name in prompts])
            assert [one.token_ids for one in outcomes] == list(answers.values())
        assert len(drafter.seen) > 100
        outcomes = plain.run(
            [
                request(f"check-{at}", [*(prompts[name] + answers[name])[:start], *way], 1)
                for at, (name, start, way, _) in enumerate(drafter.seen)
            ]
        )
    assert [one.token_ids for one in outcomes] == [[likeliest] for *_, likeliest in drafter.seen]
