"""Figures of the bench from runs whose figures are known."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from batching.draft_losses import DraftLosses
from batching.events import RequestStats
from benchmarks.speed.log import RunRecord
from benchmarks.speed.report import format_speed_report, summarise_speed
from benchmarks.speed.run import SpeedRun, WorkerFacts

K = 9
CASES = ("a", "b", "c")
FACTS = WorkerFacts(dtype="float32", versions={})
STATS = RequestStats(
    num_prompt_tokens=100,
    num_cached_tokens=0,
    num_output_tokens=24,
    drafted=20,
    accepted=18,
    forced=0,
    target_passes=4,
    decode_passes=3,
    queue_s=0.0,
    load_s=0.0,
    prefill_s=0.5,
    decode_s=0.5,
    losses=DraftLosses(rejected={"snippet": 2}, unscheduled=1, at_end=3),
)


def make_records(
    contender: str, run: SpeedRun, seconds: tuple[tuple[float, ...], ...]
) -> list[list[RunRecord]]:
    """Runs that differ in their seconds alone, one tuple a case with one figure a round."""
    return [
        [
            RunRecord(
                case=case,
                contender=contender,
                round=number,
                run=replace(run, seconds=value),
                facts=FACTS,
                peak_memory_bytes=int(1e6 * value),
            )
            for number, value in enumerate(rounds)
        ]
        for case, rounds in zip(CASES, seconds, strict=True)
    ]


def make_report() -> dict[str, object]:
    tokens = tuple(range(24))
    run = SpeedRun(token_ids=tokens, seconds=0.0, first_token_s=0.5, num_first_tokens=4)
    ours = replace(run, stats=STATS)
    off = replace(run, stats=replace(STATS, decode_s=5.0, losses=DraftLosses()))
    records = {
        "ours": make_records("ours", ours, ((1.0, 9.0, 1.5), (1.0, 1.0, 1.0), (2.5, 2.5, 2.5))),
        "speculation_off": make_records("speculation_off", off, ((5.0,) * 3,) * 3),
        "transformers_greedy": make_records("transformers_greedy", run, ((10.0,) * 3,) * 3),
        "default": make_records(
            "default",
            SpeedRun(token_ids=(), seconds=0.0, status="applied", is_exact=True),
            ((0.5,) * 3,) * 3,
        ),
        "peer": make_records("peer", run, ((2.0,) * 3, (2.0,) * 3, (4.0,) * 3)),
    }
    wrong = records["peer"][1][2]
    records["peer"][1][2] = msgspec.structs.replace(
        wrong, run=replace(wrong.run, token_ids=tokens[:-1])
    )
    return summarise_speed(records, k=K)


def test_ratios_are_of_sums_of_medians() -> None:
    figures = make_report()["contenders"]
    assert figures["ours"]["seconds"] == pytest.approx(1.5 + 1.0 + 2.5)
    assert figures["ours"]["ratio"] == 1.0
    assert figures["peer"]["ratio"] == pytest.approx(8.0 / 5.0)
    low, high = figures["peer"]["ratio_95"]
    assert 2.0 / 1.5 <= low < 1.6 < high <= 2.0
    assert figures["ours"]["median_seconds"] == 1.5
    assert make_report() == make_report(), "resampling has a fixed seed"


def test_tokens_a_second_leave_out_what_came_first() -> None:
    figures = make_report()["contenders"]
    assert figures["transformers_greedy"]["decode_tokens_per_s"] == pytest.approx(20 / 9.5)
    assert figures["default"]["decode_tokens_per_s"] is None


def test_tokens_are_the_same_only_if_they_are_in_every_round() -> None:
    figures = make_report()["contenders"]
    assert figures["speculation_off"]["same_tokens_as_ours"] == 3
    assert figures["peer"]["same_tokens_as_ours"] == 2
    assert figures["default"]["same_tokens_as_ours"] is None
    assert figures["default"]["exact"] == 3
    assert figures["default"]["statuses"] == {"applied": 3}


def test_losses_are_shared_among_their_causes() -> None:
    drafts = make_report()["drafts"]
    assert drafts["tokens_per_decode_pass"] == pytest.approx(24 / 3)
    assert drafts["tokens_per_target_pass"] == pytest.approx(24 / 4)
    assert drafts["never_wrong_per_decode_pass"] == pytest.approx(24 / 3)
    assert drafts["lost_tokens"] == 9 * 6  # three cases, three rounds
    causes = drafts["lost_by_cause"]
    assert causes["at_end"]["share_of_loss"] == pytest.approx(3 / 6)
    assert causes["rejected_snippet"]["tokens"] == 9 * 2
    assert sum(figures["tokens"] for figures in causes.values()) == drafts["lost_tokens"]


def test_the_table_has_a_line_for_each_contender_and_cause() -> None:
    report = {
        "settings": {"k": K, "draft_budget": "auto", "model": "m", "threads": 2},
        "machine": {"processor": "p"},
        "cases": 3,
        "rounds": 3,
        **make_report(),
    }
    lines = format_speed_report(report).splitlines()
    (peer,) = [line for line in lines if line.startswith("peer")]
    assert peer.split() == [
        "peer", "float32", "8.00", "1.60x", peer.split()[4], "2.00", "0.50", "9", "4",
        "2", "of", "3",
    ]  # fmt: skip
    assert any(line.split()[:2] == ["rejected_snippet", "18"] for line in lines)
    assert "default: exact in 3 of 3 cases" in lines
