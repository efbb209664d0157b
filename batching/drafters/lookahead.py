"""Lookahead: n-grams that the model itself made while it looked at guesses.

Source: Fu et al., "Break the Sequential Dependency of LLM Inference Using Lookahead Decoding", ICML
2024, arXiv 2402.02057. There each pass has a window of guesses at coming positions; what the model
makes of them are the next guesses, and n-grams of them go to a pool, from which drafts come.

Here the window are the drafted tokens that do not hold (`ObservedRequest.refused`): the pass has
their rows anyway, and what the model found likeliest behind them is what a window would have had.
Rows for guesses alone do not fit this engine. They hold so rarely that the draft budget, which
grants rows by the tokens that they bring in the same step, takes them away; and rows that bring
none are dear wherever several requests or a CPU share a pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from batching.drafters.drafter import CANDIDATES, DraftAsk, Features, ObservedRequest
from batching.drafters.target import TargetModel
from lookup.draft_tree import grow_tree
from lookup.proposer import EMPTY_DRAFT, Draft

# Tokens of an n-gram, and how many are kept behind each first token.
_NUM_TOKENS = 5
_MAX_GRAMS = 8
# The probability of what was seen last, before that, …; for the order alone.
_WORTHS = (0.6, 0.2, 0.1, 0.05)
_MAX_NODES = 16


@dataclass(slots=True)
class _Pool:
    """The n-grams of one request by their first token, the latest last.

    written: its last tokens
    """

    grams: dict[int, dict[tuple[int, ...], None]] = field(default_factory=dict)
    written: list[int] = field(default_factory=list)

    def write(self, token_id: int) -> None:
        """Take in a token of the text, and the n-grams that it ends."""
        self.written = [*self.written, token_id][-_NUM_TOKENS:]
        self.add(self.written)

    def add(self, run: Sequence[int]) -> None:
        """Keep the n-grams that begin in a run of tokens and end with it."""
        for at in range(max(0, len(run) - _NUM_TOKENS), len(run) - 1):
            kept = self.grams.setdefault(run[at], {})
            gram = tuple(run[at + 1 :])
            kept.pop(gram, None)
            kept.pop(gram[:-1], None)  # the same, as far as it was known
            kept[gram] = None
            if len(kept) > _MAX_GRAMS:
                del kept[next(iter(kept))]

    def behind(self, way: Sequence[int]) -> list[int]:
        """The tokens seen behind the longest end of a way that has any, the latest first."""
        for start in range(max(0, len(way) - _NUM_TOKENS + 1), len(way)):
            rest = tuple(way[start + 1 :])
            size = len(rest)
            grams = reversed(self.grams.get(way[start], {}))
            found = dict.fromkeys(
                gram[size] for gram in grams if len(gram) > size and gram[:size] == rest
            )
            if found:
                return list(found)
        return []


class LookaheadDrafter:
    """Drafts trees of n-grams from the request's own pool, which shows no other request's text."""

    name = "lookahead"
    taps: Sequence[int] = (CANDIDATES,)
    kv = None

    def __init__(self, _target: TargetModel) -> None:
        self._pools: dict[str, _Pool] = {}

    def observe(self, requests: Sequence[ObservedRequest], features: Features) -> None:
        """Take in what was written, and what the model makes of its guesses.

        Prompts are left out: they can be copied from.
        """
        likeliest = features[CANDIDATES][:, 0].tolist()
        for one in requests:
            pool = self._pools.setdefault(one.request_id, _Pool())
            runs: dict[int, list[int]] = {}
            for row, token_id, next_token_id in zip(
                one.rows, one.token_ids, one.next_token_ids, strict=True
            ):
                if likeliest[row] < 0:
                    continue
                if not pool.written:
                    pool.write(token_id)
                runs[row] = pool.written
                pool.write(next_token_id)
            for guess in one.refused:
                run = runs.get(guess.parent, [])
                # A run ends where the model would have gone on otherwise.
                is_own = likeliest[guess.parent] == guess.token_id
                runs[guess.row] = run = [*(run if is_own else ()), guess.token_id]
                if likeliest[guess.row] >= 0:
                    pool.add([*run, likeliest[guess.row]])

    def draft(self, asks: Sequence[DraftAsk]) -> list[Draft]:
        """The tree behind the last token of each request."""
        return [self._tree(ask) for ask in asks]

    def forget(self, request_id: str) -> None:
        """Let the pool of a request go."""
        self._pools.pop(request_id, None)

    def _tree(self, ask: DraftAsk) -> Draft:
        pool = self._pools.get(ask.request_id)
        if pool is None:
            return EMPTY_DRAFT
        before = list(ask.token_ids[-_NUM_TOKENS:])

        def children(way: Sequence[int]) -> list[tuple[int, float]]:
            return list(zip(pool.behind([*before, *way]), _WORTHS, strict=False))

        num_nodes = min(_MAX_NODES, ask.max_nodes)
        return grow_tree(
            children, max_nodes=num_nodes, max_depth=ask.max_depth, reference=self.name
        )
