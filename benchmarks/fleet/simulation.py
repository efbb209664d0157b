"""Simulates a thousand replicas: which files they hold, by the way in which edits reach them.

Edits come at random times (Poisson), of files whose popularity follows Zipf's law. A replica keeps
the files of its last edits. An edit takes longer where its file is not kept. Nothing is measured:
the durations are assumed, and waiting for others is not modelled.
"""

from __future__ import annotations

import hashlib
import heapq
import math
import random
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

_NUM_POINTS = 100  # of a replica on the ring, as Ray Serve has
# A replica takes no more than this times the mean, as in "Consistent Hashing with Bounded Loads".
_BOUND = 1.25

ROUTINGS = ("ring", "bounded", "random")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """The assumptions of a run; seconds of an edit by whether its file is kept."""

    num_replicas: int = 1000
    num_files: int = 20_000
    files_per_replica: int = 20
    num_edits: int = 20_000
    zipf: float = 1.0
    edits_per_s: float = 13_000.0
    hit_s: float = 0.15
    miss_s: float = 0.5
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Of the second half of a run: hits, the fullest replica's edits at once, the mean of all.

    Of the whole run: `moved`, the share of files whose first replica another one became by deaths,
    and the hits of the tenth of the edits that came right after them.
    """

    hit_share: float
    most_at_once: int
    mean_at_once: float
    moved: float = 0.0
    hit_share_after_deaths: float | None = None


class Ring:
    """A ring of hashed points; a dead replica's files go to the next ones, others stay."""

    def __init__(self, num_replicas: int) -> None:
        points = [
            (_hash(f"{replica}:{point}"), replica)
            for replica in range(num_replicas)
            for point in range(_NUM_POINTS)
        ]
        points.sort()
        self._hashes = [position for position, _ in points]
        self._replicas = [replica for _, replica in points]
        self.alive = set(range(num_replicas))

    def choose(self, key: int, is_full: Callable[[int], bool]) -> int:
        """The first replica from the key on that lives and is not full; else the first of all."""
        start = bisect_right(self._hashes, key)
        first = None
        for step in range(len(self._hashes)):
            replica = self._replicas[(start + step) % len(self._hashes)]
            if replica in self.alive:
                if not is_full(replica):
                    return replica
                first = replica if first is None else first
        assert first is not None, "a fleet has a replica that lives"
        return first


def simulate(fleet: Fleet, routing: str, *, dead_share: float = 0.0) -> Outcome:
    """One run; `dead_share` of the replicas end after half of the edits."""
    dice = random.Random(fleet.seed)
    keys = [_hash(f"file-{number}") for number in range(fleet.num_files)]
    files = _files(fleet)
    ring = Ring(fleet.num_replicas)
    kept: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(fleet.num_replicas)]
    at_once = [0] * fleet.num_replicas
    ends: list[tuple[float, int]] = []
    hits: list[bool] = []
    now, most, moved, total = 0.0, 0, 0.0, 0
    half = fleet.num_edits // 2
    alive: Sequence[int] = range(fleet.num_replicas)
    for number, file in enumerate(files):
        if number == half and dead_share:
            before = [ring.choose(key, _never) for key in keys]
            dead = dice.sample(range(fleet.num_replicas), round(dead_share * fleet.num_replicas))
            ring.alive -= set(dead)
            alive = sorted(ring.alive)
            after = [ring.choose(key, _never) for key in keys]
            moved = sum(a != b for a, b in zip(before, after, strict=True)) / fleet.num_files
        now += dice.expovariate(fleet.edits_per_s)
        while ends and ends[0][0] <= now:
            at_once[heapq.heappop(ends)[1]] -= 1
        if routing == "random":
            replica = dice.choice(alive)
        else:
            # The mean counts this edit; without a bound no replica is ever full.
            mean = (len(ends) + 1) / len(alive)
            bound = max(1.0, _BOUND * mean) if routing == "bounded" else math.inf
            replica = ring.choose(keys[file], partial(_is_full, at_once, bound))
        is_hit = _keep(kept[replica], file, fleet.files_per_replica)
        at_once[replica] += 1
        heapq.heappush(ends, (now + (fleet.hit_s if is_hit else fleet.miss_s), replica))
        hits.append(is_hit)
        if number >= half:
            most = max(most, at_once[replica])
            total += len(ends)
    tenth = fleet.num_edits // 10
    return Outcome(
        hit_share=sum(hits[half:]) / (fleet.num_edits - half),
        most_at_once=most,
        mean_at_once=total / (fleet.num_edits - half) / len(alive),
        moved=moved,
        hit_share_after_deaths=sum(hits[half : half + tenth]) / tenth if dead_share else None,
    )


def table(fleet: Fleet, dead_share: float) -> str:
    """All routings, without deaths and with, as Markdown."""
    lines = [
        "| routing | found | fullest replica, mean | files moved | found right after |",
        "|---|---|---|---|---|",
    ]
    for routing in ROUTINGS:
        calm, hurt = simulate(fleet, routing), simulate(fleet, routing, dead_share=dead_share)
        moved = "–" if routing == "random" else f"{hurt.moved:.1%}"
        lines.append(
            f"| {routing} | {calm.hit_share:.1%} | {calm.most_at_once}, {calm.mean_at_once:.1f}"
            f" | {moved} | {hurt.hit_share_after_deaths:.1%} |"
        )
    return "\n".join(lines)


def _files(fleet: Fleet) -> list[int]:
    weights = 1.0 / np.arange(1, fleet.num_files + 1) ** fleet.zipf
    generator = np.random.default_rng(fleet.seed)
    chosen = generator.choice(fleet.num_files, size=fleet.num_edits, p=weights / weights.sum())
    return [int(file) for file in chosen]


def _keep(kept: OrderedDict[int, None], file: int, limit: int) -> bool:
    """Note that a replica has a file, and forget the one used longest ago; whether it had it."""
    is_hit = file in kept
    kept[file] = None
    kept.move_to_end(file)
    if len(kept) > limit:
        kept.popitem(last=False)
    return is_hit


def _is_full(at_once: Sequence[int], bound: float, replica: int) -> bool:
    return at_once[replica] + 1 > bound


def _never(_replica: int) -> bool:
    return False


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
