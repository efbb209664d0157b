"""A nondeterministic automaton over the tokens of lines that simulates all valid merges at once.

A position in an answer is a tuple of `Thread`s: every way in which the text so far can be
read. Threads that can no longer place all segments are not made, so none leads into a dead end.
Between two choices a thread owns a run of tokens that is copied as a slice.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from lookup.constraint import TokenNotAllowedError
from lookup.merge_rules import MergeRules
from lookup.merge_track import OriginalTrack, PlacementTrack
from lookup.placement_table import PlacementTable

ORIGINAL = -1
NOTHING_OMITTED = -1
MAX_NAMED_TOKENS = 8


@dataclass(frozen=True, slots=True, eq=False)
class Trail:
    """The choices behind a thread, latest first: a track entered, or one of its lines left out.

    `weight` is of the whole trail.
    """

    weight: float
    track: int
    omitted_line: int
    before: Trail | None


class Thread(NamedTuple):
    """One reading: the next token is that at `position` of a track, or of the original.

    Up to `stop` the track is followed; `mask` are the segments to be placed after that. A thread
    with `position == stop` stands behind a complete answer.
    """

    track: int
    position: int
    stop: int
    mask: int
    trail: Trail | None

    @property
    def weight(self) -> float:
        """The weight of the choices made so far."""
        return 0.0 if self.trail is None else self.trail.weight


Threads = tuple[Thread, ...]
_Place = tuple[int, int, int]
_Arrival = tuple[int, int, int, Trail | None]


class MergeAutomaton:
    """Pure functions over threads; only caches of what the rules imply are ever written."""

    __slots__ = ("_original", "_rules", "_tracks", "start", "table")

    def __init__(self, rules: MergeRules) -> None:
        """Raises `GrammarError` if the rules are invalid or leave no complete path."""
        rules.check()
        self._rules = rules
        self._original = OriginalTrack(rules.original, rules.removed, rules.end_token_ids)
        self.table = PlacementTable(rules)
        self._tracks: list[PlacementTrack | None] = [None] * len(self.table.placements)
        self.start: Threads = self._settle([(ORIGINAL, 0, self.table.all_segments, None)])

    @property
    def prior_scale(self) -> float:
        """The factor of the weights beside the model's log-probabilities."""
        return self._rules.prior_scale

    def tokens(self, thread: Thread, length: int) -> tuple[int, ...]:
        """The next `length` tokens of a thread, at most up to its stop."""
        end = min(thread.position + length, thread.stop)
        if thread.track == ORIGINAL:
            return self._original.tokens[thread.position : end]
        return self._track(thread.track).tokens[thread.position : end]

    def is_complete(self, threads: Threads) -> bool:
        """True if a valid answer ends here."""
        return any(thread.position == thread.stop for thread in threads)

    def allowed(self, threads: Threads) -> list[int]:
        """The tokens, ascending, that continue a valid answer."""
        return sorted({token for thread in threads for token in self.tokens(thread, 1)})

    def common_run(self, threads: Threads, max_tokens: int) -> tuple[int, ...]:
        """Next tokens that all threads share, perhaps not all; none at a decision or the end."""
        length = max_tokens
        for thread in threads:
            length = min(length, thread.stop - thread.position)
        if length <= 0 or not threads:
            return ()
        run = self.tokens(threads[0], length)
        for thread in threads[1:]:
            other = self.tokens(thread, len(run))
            if other != run:
                run = run[: _common_length(run, other)]
        return run

    def forced(self, threads: Threads, max_tokens: int | None) -> tuple[list[int], Threads]:
        """The tokens up to the next decision or the end, and the threads behind them."""
        room = sys.maxsize if max_tokens is None else max_tokens
        written: list[int] = []
        while run := self.common_run(threads, room - len(written)):
            written += run
            threads = self.move(threads, len(run))
        return written, threads

    def follow(self, threads: Threads, token_ids: Sequence[int]) -> Threads:
        """The threads behind `token_ids`. Raises `TokenNotAllowedError`."""
        wanted = tuple(token_ids)
        offset = 0
        while offset < len(wanted):
            live = [thread for thread in threads if thread.position < thread.stop]
            length = min((thread.stop - thread.position for thread in live), default=0)
            chunk = wanted[offset : offset + length]
            kept = [thread for thread in live if self.tokens(thread, len(chunk)) == chunk]
            if not kept:
                raise self._refusal(live, wanted, offset)
            threads = self.move(tuple(kept), len(chunk))
            offset += len(chunk)
        return threads

    def move(self, threads: Threads, length: int) -> Threads:
        """The threads behind their next `length` tokens; no stop may lie within."""
        moved: list[Thread] = []
        arrivals: list[_Arrival] = []
        for track, position, stop, mask, trail in threads:
            if position + length < stop or (track == ORIGINAL and not mask):
                moved.append(Thread(track, position + length, stop, mask, trail))
            elif track == ORIGINAL:
                line = self._original.line_at(stop - 1) + 1
                arrivals.append((ORIGINAL, line, mask, trail))
            else:
                arrivals.append((track, stop, mask, trail))
        return self._settle(arrivals, moved) if arrivals else tuple(moved)

    def outlook(self, thread: Thread) -> float:
        """The weight of the heaviest continuation of a thread, without its own trail."""
        if thread.track == ORIGINAL:
            line = self._original.line_at(thread.position)
            return self.table.best_from(thread.mask, line + 1)
        placement = self.table.placements[thread.track]
        num_choices = self._track(thread.track).num_choices_behind(thread.position)
        omissions = max(0.0, placement.omission_weight) * num_choices
        return omissions + self.table.best_from(thread.mask, placement.end)

    def upcoming(self, thread: Thread) -> list[int]:
        """The tracks that a thread on the original may enter next."""
        if thread.track != ORIGINAL:
            return []
        entrances = self.table.entrances(thread.mask)
        line = self._original.line_at(thread.position)
        return entrances.tracks[bisect_right(entrances.starts, line) :]

    def border_offsets(self, threads: Threads, length: int) -> set[int]:
        """The offsets, below `length`, of the next tokens of a thread that are borders."""
        offsets: set[int] = set()
        for track, position, _, _, trail in threads:
            if track != ORIGINAL:
                places = self._track(track).borders.inside
            else:
                places = () if trail is None else self._track(trail.track).borders.behind
            offsets.update(p - position for p in places if position <= p < position + length)
        return offsets

    def _track(self, number: int) -> PlacementTrack:
        track = self._tracks[number]
        if track is None:
            track = self._tracks[number] = PlacementTrack(
                self.table.placements[number],
                original=self._original,
                original_lines=self._rules.original,
            )
        return track

    def _settle(self, arrivals: list[_Arrival], moved: Sequence[Thread] = ()) -> Threads:
        """Threads at their next token, from places between two tokens; the heavier of equals."""
        found = {(thread.track, thread.position, thread.mask): thread for thread in moved}
        seen: dict[_Place, float] = {}
        pending = arrivals[::-1]
        while pending:
            track, place, mask, trail = pending.pop()
            weight = 0.0 if trail is None else trail.weight
            if weight <= seen.get((track, place, mask), -inf):
                continue
            seen[track, place, mask] = weight
            if track == ORIGINAL:
                thread = self._stand(place, mask, trail, pending)
            else:
                thread = self._read(track, place, mask, trail, pending)
            if thread is not None:
                known = found.get((thread.track, thread.position, mask))
                if known is None or known.weight < weight:
                    found[thread.track, thread.position, mask] = thread
        return tuple(found.values())

    def _stand(
        self, line: int, mask: int, trail: Trail | None, pending: list[_Arrival]
    ) -> Thread | None:
        """Before `line` of the original: enter what may be entered here, and copy on."""
        line_starts = self._original.line_starts
        if not mask:
            return Thread(ORIGINAL, line_starts[line], len(self._original.tokens), 0, trail)
        entrances = self.table.entrances(mask)
        kept = self._original.next_kept(line)
        first = bisect_left(entrances.starts, line)
        behind = bisect_right(entrances.starts, kept, first)
        for track in entrances.tracks[first:behind]:
            weight = self.table.placements[track].weight + (trail.weight if trail else 0.0)
            rest = mask & ~(1 << self.table.segment_of[track])
            pending.append((track, 0, rest, Trail(weight, track, NOTHING_OMITTED, trail)))
        if behind == len(entrances.starts):
            return None
        stop = line_starts[entrances.starts[behind]]
        return Thread(ORIGINAL, line_starts[kept], stop, mask, trail)

    def _read(
        self, number: int, position: int, mask: int, trail: Trail | None, pending: list[_Arrival]
    ) -> Thread | None:
        """At a choice in a placement: read the line, leave it out, or leave the placement."""
        track = self._track(number)
        if position == len(track.tokens):
            pending.append((ORIGINAL, self.table.placements[number].end, mask, trail))
            return None
        behind = track.next_starts.get(position)
        if behind is not None:
            weight = self.table.placements[number].omission_weight
            weight += trail.weight if trail else 0.0
            omission = Trail(weight, number, track.line_numbers[position], trail)
            pending.append((number, behind, mask, omission))
        return Thread(number, position, track.stop_behind(position), mask, trail)

    def _refusal(
        self, live: Sequence[Thread], wanted: tuple[int, ...], offset: int
    ) -> TokenNotAllowedError:
        """The error for `wanted`, whose token at `offset` or a little later is wrong."""
        agreed = [_common_length(self.tokens(t, len(wanted)), wanted[offset:]) for t in live]
        longest = max(agreed, default=0)
        allowed = {
            token
            for thread, length in zip(live, agreed, strict=True)
            for token in self.tokens(thread, longest + 1)[longest:]
            if length == longest
        }
        named = ", ".join(map(str, sorted(allowed)[:MAX_NAMED_TOKENS])) or "no token"
        more = f" and {len(allowed) - MAX_NAMED_TOKENS} more" * (len(allowed) > MAX_NAMED_TOKENS)
        return TokenNotAllowedError(
            f"token {wanted[offset + longest]}, number {offset + longest} of {len(wanted)}, is not "
            f"allowed; allowed there: {named}{more}"
        )


def _common_length(left: Sequence[int], right: Sequence[int]) -> int:
    """Number of leading tokens that agree, up to the end of the shorter."""
    for count, (first, second) in enumerate(zip(left, right, strict=False)):
        if first != second:
            return count
    return min(len(left), len(right))
