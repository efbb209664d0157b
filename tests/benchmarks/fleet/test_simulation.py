"""The simulation of a fleet against what must hold of each way of routing."""

from __future__ import annotations

from benchmarks.fleet.simulation import Fleet, Ring, _hash, simulate

SMALL = Fleet(
    num_replicas=20, num_files=400, files_per_replica=30, num_edits=8000, edits_per_s=300.0
)


def test_deaths_move_the_files_of_the_dead_only() -> None:
    ring = Ring(20)
    keys = [_hash(f"file-{number}") for number in range(2000)]
    before = [ring.choose(key, lambda _: False) for key in keys]
    ring.alive -= {3, 7}
    after = [ring.choose(key, lambda _: False) for key in keys]

    for old, new in zip(before, after, strict=True):
        assert new == old or old in (3, 7)
        assert new not in (3, 7)


def test_a_full_replica_passes_a_file_on_in_the_order_of_the_ring() -> None:
    ring = Ring(5)
    key = _hash("file")
    order: list[int] = []
    while len(order) < 5:
        order.append(ring.choose(key, lambda one: one in order))
    assert sorted(order) == list(range(5))
    assert ring.choose(key, lambda _: True) == order[0]


def test_affinity_finds_more_and_bounds_keep_replicas_even() -> None:
    ring, bounded, chance = (simulate(SMALL, routing) for routing in ("ring", "bounded", "random"))

    assert ring.hit_share > 0.9 > chance.hit_share + 0.2
    assert chance.hit_share < bounded.hit_share <= ring.hit_share
    assert bounded.most_at_once < ring.most_at_once / 2
    again = simulate(SMALL, "bounded")
    assert again == bounded


def test_a_tenth_of_the_replicas_takes_a_tenth_of_the_files_along() -> None:
    hurt = simulate(SMALL, "ring", dead_share=0.1)

    assert 0.04 < hurt.moved < 0.2
    assert hurt.hit_share_after_deaths is not None
    assert hurt.hit_share_after_deaths < simulate(SMALL, "ring").hit_share
