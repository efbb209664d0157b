"""Drafters that are as unhelpful as can be, and an engine that is given drafters as they are."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from engine_runs import RunningEngine, forced_rows
from tree_proposers import TreeKind, TreeProposer

from batching.config import EngineConfig
from batching.drafters.drafter import LAST_HIDDEN, DraftAsk, Drafter, Features, ObservedRequest
from batching.drafters.last_rows import LastRows
from batching.drafters.target import TargetModel
from batching.engine import Engine
from batching.model.runner import ModelRunner
from kernels.philox import philox_uniform
from lookup.proposer import MAIN, Branch, Draft

Answers = Mapping[str, Sequence[int]]
MakeDrafter = Callable[[TargetModel], Drafter]


@contextmanager
def engine_with_drafter(config: EngineConfig, make: MakeDrafter) -> Iterator[RunningEngine]:
    """Start an engine with one drafter, and stop it at the end."""
    runner = ModelRunner(replace(config, row_grouping=forced_rows()))
    drafter = make(runner.target)
    runner.attach([drafter])
    runner.warm_up()
    engine = Engine(config.scheduler, runner, config.cache, drafters=[drafter])
    running = RunningEngine(engine)
    try:
        yield running
    finally:
        engine.stop()


class TreeDrafter:
    """Drafts the trees of `TreeProposer` from the answers that it knows by request."""

    name = "adversarial"
    taps: Sequence[int] = ()
    kv = None

    def __init__(self, answers: Answers, kind: TreeKind = "random") -> None:
        self._answers = answers
        self._kind = kind
        self.num_asks = 0

    def observe(self, requests: Sequence[ObservedRequest], features: Features) -> None:
        """Nothing is kept."""

    def draft(self, asks: Sequence[DraftAsk]) -> list[Draft]:
        """A tree for each request."""
        self.num_asks += len(asks)
        return [self.tree(ask) for ask in asks]

    def forget(self, request_id: str) -> None:
        """Nothing was kept."""

    def tree(self, ask: DraftAsk) -> Draft:
        """A tree of the drafter's kind."""
        answer = self._answers[ask.request_id]
        proposer = TreeProposer(answer, self._kind, seed=1000 * ask.output_position + len(answer))
        proposer.commit(answer[: ask.output_position])
        return proposer.propose(ask.max_nodes)


class SlowDrafter(TreeDrafter):
    """Takes its time."""

    def draft(self, asks: Sequence[DraftAsk]) -> list[Draft]:
        """The same trees, later."""
        time.sleep(0.003)
        return super().draft(asks)


class FailingDrafter(TreeDrafter):
    """Raises in one of its methods once it has been asked for some drafts."""

    def __init__(self, answers: Answers, method: str) -> None:
        super().__init__(answers, "lucky")
        self._method = method

    def observe(self, requests: Sequence[ObservedRequest], features: Features) -> None:
        """Raise, if it is time."""
        self._may_raise("observe")

    def draft(self, asks: Sequence[DraftAsk]) -> list[Draft]:
        """Trees, or an error."""
        self._may_raise("draft")
        return super().draft(asks)

    def forget(self, request_id: str) -> None:
        """Raise, if it is time."""
        self._may_raise("forget")

    def _may_raise(self, method: str) -> None:
        if method == self._method and self.num_asks > 20:
            raise RuntimeError(f"{method} fails on purpose")


class BrokenDrafter(TreeDrafter):
    """Now and then drafts what is no draft, or not as many drafts as were asked for."""

    def __init__(self, answers: Answers, broken: Draft | None) -> None:
        """broken: None leaves a draft out"""
        super().__init__(answers, "lucky")
        self._broken = broken

    def draft(self, asks: Sequence[DraftAsk]) -> list[Draft]:
        """Lucky trees at first."""
        drafts = super().draft(asks)
        if self.num_asks <= 20:
            return drafts
        return [*drafts[:-1], *([] if self._broken is None else [self._broken])]


class PeekingDrafter:
    """Computes the token that will be written, and drafts it or another, as its draw decides.

    So whether a draft holds depends on the very number that the token is drawn with; and so do the
    other tokens of the tree.
    """

    name = "adversarial"
    taps: Sequence[int] = (LAST_HIDDEN,)
    kv = None

    def __init__(self, target: TargetModel) -> None:
        self._target = target
        self._rows = LastRows()
        self._vocab_size = target.shape.vocab_size

    def observe(self, requests: Sequence[ObservedRequest], features: Features) -> None:
        """Keep the last hidden row of each request."""
        self._rows.keep(requests, features[LAST_HIDDEN])

    def draft(self, asks: Sequence[DraftAsk]) -> list[Draft]:
        """A tree for each request."""
        if not asks:
            return []
        logits = self._target.logits(self._rows.stacked(asks))
        drawn = self._target.draw(logits, asks, depth=0).tolist()
        return [self._tree(ask, token_id) for ask, token_id in zip(asks, drawn, strict=True)]

    def forget(self, request_id: str) -> None:
        """Let the row of a request go."""
        self._rows.forget(request_id)

    def _tree(self, ask: DraftAsk, drawn: int) -> Draft:
        draws = [
            philox_uniform(ask.sampling.seed, ask.output_position + depth) for depth in range(4)
        ]
        size = self._vocab_size
        behind = [int(draw * size) for draw in draws[1:]]
        other = (drawn + 1 + int(draws[0] * (size - 1))) % size
        first, second = (drawn, other) if draws[0] < 0.5 else (other, drawn)
        branches = [Branch(0, (second,), self.name)]
        if draws[0] < 0.8:  # else the right token may be missing in the tree
            branches = [Branch(0, (second, behind[0]), self.name), *self._inner(behind)]
        elif draws[0] > 0.9:
            branches = []
        return Draft((first, *behind[:2]), self.name, 0, branches=tuple(branches)).cut(
            ask.max_nodes
        )

    def _inner(self, behind: Sequence[int]) -> list[Branch]:
        """Branches of the draft itself and of its first branch."""
        tokens = [(token_id + 1) % self._vocab_size for token_id in behind]
        return [
            Branch(1, (tokens[0],), self.name, parent=MAIN),
            Branch(1, (tokens[0], behind[2]), self.name, parent=0),
        ]
