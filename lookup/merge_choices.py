"""The choices behind threads: placements taken, lines left out, and decisions as they were made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lookup.merge_automaton import NOTHING_OMITTED, MergeAutomaton, Thread, Threads, Trail
from lookup.placement_table import PlacementTable


@dataclass(frozen=True, slots=True)
class MergeChoice:
    """Placement number `placement` of segment `segment`; or one of its optional lines left out."""

    segment: int
    placement: int
    omitted_line: int | None = None


@dataclass(frozen=True, slots=True)
class MergeDecision:
    """A position of the answer, in tokens, that allows more than one token.

    `alternatives` are the allowed tokens, ascending, each with its choices.
    """

    offset: int
    chosen_token_id: int
    alternatives: tuple[tuple[int, tuple[MergeChoice, ...]], ...]


def choices_by_token(
    automaton: MergeAutomaton, threads: Threads
) -> dict[int, tuple[MergeChoice, ...]]:
    """The choices at stake that are possible behind each allowed token."""
    threads_of: dict[int, list[Thread]] = {}
    for thread in threads:
        for token_id in automaton.tokens(thread, 1):
            threads_of.setdefault(token_id, []).append(thread)
    return dict(zip(threads_of, choices_at_stake(automaton, threads_of.values()), strict=True))


def choices_at_stake(
    automaton: MergeAutomaton, ways: Iterable[Sequence[Thread]]
) -> list[tuple[MergeChoice, ...]]:
    """The choices made or open on each of several ways, without those not at stake.

    Not at stake is a segment with the same placements on all ways, or a line left out on all.
    """
    possible = [
        {choice for thread in threads for choice in _possible(automaton, thread)}
        for threads in ways
    ]
    by_segment = [_placements(choices) for choices in possible]
    on_all_ways = set.intersection(*possible) if possible else set()
    same = {
        segment
        for segment in set().union(*by_segment)
        if all(found.get(segment) == by_segment[0].get(segment) for found in by_segment)
    }

    def is_at_stake(choice: MergeChoice) -> bool:
        if choice.omitted_line is None:
            return choice.segment not in same
        return choice not in on_all_ways

    return [tuple(sorted(filter(is_at_stake, choices), key=_order)) for choices in possible]


def thread_choices(automaton: MergeAutomaton, thread: Thread) -> tuple[MergeChoice, ...]:
    """The choices on a thread's trail, in the order in which they were made."""
    return tuple(_choices(automaton.table, thread.trail)[::-1])


def decisions_of(automaton: MergeAutomaton, token_ids: Sequence[int]) -> list[MergeDecision]:
    """The decisions of an answer or of its beginning. Raises `TokenNotAllowedError`."""
    found: list[MergeDecision] = []
    threads = automaton.start
    offset = 0
    while offset < len(token_ids):
        run = automaton.common_run(threads, len(token_ids) - offset)
        length = max(1, len(run))
        by_token = {} if run else choices_by_token(automaton, threads)
        threads = automaton.follow(threads, token_ids[offset : offset + length])
        if not run:
            alternatives = tuple(sorted(by_token.items(), key=lambda item: item[0]))
            found.append(MergeDecision(offset, token_ids[offset], alternatives))
        offset += length
    return found


def _placements(choices: set[MergeChoice]) -> dict[int, set[int]]:
    """The placements of each segment."""
    found: dict[int, set[int]] = {}
    for choice in choices:
        found.setdefault(choice.segment, set()).add(choice.placement)
    return found


def _possible(automaton: MergeAutomaton, thread: Thread) -> list[MergeChoice]:
    """The choices that a thread has made, and those it may make next."""
    upcoming = [_placed(automaton.table, track) for track in automaton.upcoming(thread)]
    return _choices(automaton.table, thread.trail) + upcoming


def _choices(table: PlacementTable, trail: Trail | None) -> list[MergeChoice]:
    """The choices of a trail, latest first."""
    found: list[MergeChoice] = []
    while trail is not None:
        choice = _placed(table, trail.track)
        if trail.omitted_line != NOTHING_OMITTED:
            choice = MergeChoice(choice.segment, choice.placement, trail.omitted_line)
        found.append(choice)
        trail = trail.before
    return found


def _placed(table: PlacementTable, track: int) -> MergeChoice:
    return MergeChoice(table.segment_of[track], table.number_of(track))


def _order(choice: MergeChoice) -> tuple[int, int, int]:
    line = -1 if choice.omitted_line is None else choice.omitted_line
    return choice.segment, choice.placement, line
