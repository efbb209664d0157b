"""Counting: passes, accepted drafts, means over cases and over passes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from benchmarks.drafters.replay import ReplayFigures, ceiling, replay, summarise_replay
from lookup.proposer import Draft


class Scripted:
    """Drafts that were written down beforehand, one for each pass."""

    def __init__(self, drafts: Sequence[Sequence[int]]) -> None:
        self.drafts = list(drafts)
        self.committed: list[list[int]] = []
        self.is_built = False

    def build(self) -> None:
        self.is_built = True

    def propose(self, max_tokens: int) -> Draft:
        return Draft(tuple(self.drafts[len(self.committed)][:max_tokens]), "script", 0)

    def commit(self, token_ids: Sequence[int]) -> None:
        self.committed.append(list(token_ids))


def test_a_pass_writes_the_accepted_tokens_and_one_more() -> None:
    proposer = Scripted([[1, 2, 9], [], [5, 6, 7, 8]])
    figures = replay(proposer, [1, 2, 3, 4, 5, 6], max_draft_tokens=64)
    assert proposer.is_built
    assert proposer.committed == [[1, 2, 3], [4], [5, 6]]
    assert (figures.num_tokens, figures.num_passes) == (6, 3)
    assert (figures.drafted, figures.accepted) == (7, 4)
    assert figures.tokens_per_pass == 2.0


def test_drafts_are_no_longer_than_asked() -> None:
    proposer = Scripted([[1, 2, 3, 4]] * 3)
    figures = replay(proposer, [1, 2, 3], max_draft_tokens=2)
    assert (figures.num_passes, figures.drafted) == (1, 2)


def figures_of(num_tokens: int, num_passes: int) -> ReplayFigures:
    return ReplayFigures(
        num_tokens=num_tokens,
        num_passes=num_passes,
        drafted=10 * num_passes,
        accepted=5 * num_passes,
        build_s=0.0,
        propose_s=1e-6 * num_passes,
        shares=(),
    )


def test_the_mean_is_over_cases_and_p10_is_the_nearest_rank() -> None:
    summary = summarise_replay(
        [figures_of(10 * n, 1) for n in range(1, 10)] + [figures_of(1000, 10)]
    )
    passes = summary["tokens_per_target_pass"]
    assert passes["mean"] == pytest.approx(55.0)
    assert passes["p10"] == 10.0
    assert passes["pooled"] == pytest.approx(1450 / 19)
    assert summary["acceptance"] == 0.5
    assert summary["drafted_per_pass"] == 10.0
    assert summary["propose_us"] == pytest.approx(1.0)


def test_the_ceiling_is_what_a_drafter_that_is_never_wrong_reaches() -> None:
    assert ceiling([65, 650], max_draft_tokens=64) == {"mean": 65.0, "p10": 65.0, "pooled": 65.0}
    pulled = ceiling([66, 65], max_draft_tokens=64)
    assert pulled == {"mean": 49.0, "p10": 33.0, "pooled": pytest.approx(131 / 3)}
