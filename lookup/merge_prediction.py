"""Predicts the rest of a merge: the heaviest path that agrees with the text so far."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from lookup.constraint import ConstrainedDraft, DecisionRow
from lookup.merge_automaton import MergeAutomaton, Thread, Threads


def predict(
    automaton: MergeAutomaton, threads: Threads, max_tokens: int | None
) -> ConstrainedDraft:
    """At most `max_tokens` tokens along the heaviest path, with its decisions and borders."""
    room = sys.maxsize if max_tokens is None else max_tokens
    written: list[int] = []
    decisions: list[DecisionRow] = []
    borders: set[int] = set()
    while True:
        offset = len(written)
        run = automaton.common_run(threads, room - offset)
        if run:
            borders |= {offset + at for at in automaton.border_offsets(threads, len(run))}
            written += run
            threads = automaton.move(threads, len(run))
            continue
        allowed = automaton.allowed(threads)
        if len(allowed) > 1 or (allowed and automaton.is_complete(threads)):
            prior = log_prior(automaton, threads, allowed)
            decisions.append(DecisionRow(offset, tuple(allowed), prior))
        heaviest = heaviest_thread(automaton, threads)
        is_complete = heaviest.position == heaviest.stop
        if is_complete or offset == room:
            break
        written.append(automaton.tokens(heaviest, 1)[0])
        threads = automaton.follow(threads, written[-1:])
    borders.difference_update(decision.offset for decision in decisions)
    return ConstrainedDraft(tuple(written), tuple(decisions), tuple(sorted(borders)), is_complete)


def log_prior(
    automaton: MergeAutomaton, threads: Threads, token_ids: Sequence[int]
) -> tuple[float, ...]:
    """The scaled weight of each allowed token's heaviest path; the largest is 0.

    Empty where the rules do not use weights.
    """
    if not automaton.prior_scale:
        return ()
    heaviest: dict[int, float] = {}
    for thread in threads:
        for token_id in automaton.tokens(thread, 1):
            weight = total_weight(automaton, thread)
            heaviest[token_id] = max(weight, heaviest.get(token_id, weight))
    largest = max(heaviest.values(), default=0.0)
    return tuple(automaton.prior_scale * (heaviest[token_id] - largest) for token_id in token_ids)


def heaviest_thread(automaton: MergeAutomaton, threads: Threads) -> Thread:
    """The thread on the heaviest path; the first of equals."""
    if len(threads) == 1:
        return threads[0]
    return max(threads, key=lambda thread: total_weight(automaton, thread))


def total_weight(automaton: MergeAutomaton, thread: Thread) -> float:
    """The weight of the heaviest complete path through a thread."""
    return thread.weight + automaton.outlook(thread)
