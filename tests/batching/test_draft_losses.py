"""Every token that a pass could have brought and did not has one cause."""

from __future__ import annotations

from batching.draft_losses import DraftLosses, LossCounter
from lookup.proposer import Draft

STITCHED = Draft(
    tuple(range(8)), "original", 3, sources=((0, "original"), (2, "snippet"), (5, "original"))
)


def count_pass(counter: LossCounter, draft: Draft | None, num_accepted: int) -> None:
    counter.count_pass(
        draft, num_accepted=num_accepted, num_written=num_accepted + 1, is_last=False
    )


def test_a_pass_that_brings_everything_loses_nothing() -> None:
    counter = LossCounter(8)
    counter.note_proposal(num_asked=8, num_proposed=8)
    count_pass(counter, STITCHED, 8)
    assert sum(counter.losses.by_cause.values()) == 0


def test_a_refused_token_is_charged_to_the_copy_that_it_stood_in() -> None:
    counter = LossCounter(10)
    for num_accepted, name in ((0, "original"), (2, "snippet"), (4, "snippet"), (6, "original")):
        before = counter.losses.rejected.get(name, 0)
        counter.note_proposal(num_asked=8, num_proposed=8)
        count_pass(counter, STITCHED, num_accepted)
        assert counter.losses.rejected[name] - before == 8 - num_accepted
    assert counter.losses.without_room == 4 * 2


def test_a_short_draft_is_charged_to_whoever_made_it_short() -> None:
    counter = LossCounter(10)
    counter.note_proposal(num_asked=9, num_proposed=7)
    count_pass(counter, STITCHED.cut(4), 1)
    counter.note_proposal(num_asked=0, num_proposed=0)
    count_pass(counter, None, 0)
    assert counter.losses == DraftLosses(
        rejected={"original": 3}, unproposed=2, unscheduled=3, without_room=1 + 10
    )


def test_the_last_pass_is_the_end_whatever_else_happened() -> None:
    counter = LossCounter(10)
    counter.note_proposal(num_asked=8, num_proposed=8)
    counter.count_pass(STITCHED, num_accepted=3, num_written=4, is_last=True)
    assert counter.losses == DraftLosses(at_end=7)


def test_losses_add_up() -> None:
    first = DraftLosses(rejected={"original": 1, "merge": 2}, unproposed=3, at_end=4)
    second = DraftLosses(rejected={"merge": 5}, unscheduled=6, without_room=7)
    assert DraftLosses.total([first, second]) == DraftLosses(
        rejected={"original": 1, "merge": 7},
        unproposed=3,
        unscheduled=6,
        without_room=7,
        at_end=4,
    )
    assert first.by_cause["rejected_merge"] == 2
    assert sum(first.by_cause.values()) == 10
