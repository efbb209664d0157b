"""The figures of `benchmarks speed` from its runs: times, ratios, and what drafts lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from apply_service.evaluate.case_statistics import bootstrap_ratio_interval
from batching.events import RequestStats
from benchmarks.drafters.replay import ceiling
from benchmarks.speed.contenders import DEFAULT, OURS, SPECULATION_OFF, TRANSFORMERS_GREEDY
from benchmarks.speed.log import RunRecord
from benchmarks.speed.run import SpeedRun

# For each case its runs, one a round, in the order of the rounds.
Rounds = Sequence[Sequence[RunRecord]]

_MEMORY_COVERS = (
    "the most that was resident in the contender's own process since it was started: interpreter,"
    " libraries, loading the model and all cases"
)


def summarise_speed(records: Mapping[str, Rounds], *, k: int) -> dict[str, Any]:
    """Figures of every contender and, of ours, of its drafts. All have the same cases."""
    ours = records[OURS]
    seconds = {name: _seconds(rounds) for name, rounds in records.items()}
    contenders = {
        name: _contender(rounds, ours, has_tokens=name != DEFAULT)
        for name, rounds in records.items()
    }
    for name, figures in contenders.items():
        figures["ratio"] = sum(seconds[name]) / sum(seconds[OURS])
        figures["ratio_95"] = bootstrap_ratio_interval(seconds[name], seconds[OURS])
    stats = _stats(ours)
    off, greedy = sum(seconds[SPECULATION_OFF]), sum(seconds[TRANSFORMERS_GREEDY])
    return {
        "contenders": contenders,
        "speculation_off_against_transformers_greedy": greedy / off,
        "decode_ratio_against_speculation_off": _decode_s(records[SPECULATION_OFF])
        / _decode_s(ours),
        "prompt_tokens": RequestStats.total(stats).num_prompt_tokens // len(ours[0]),
        "answer_tokens": sum(len(rounds[0].run.token_ids) for rounds in ours),
        "peak_memory_covers": _MEMORY_COVERS,
        "drafts": _drafts(stats, k=k),
    }


def _contender(rounds: Rounds, ours: Rounds, *, has_tokens: bool) -> dict[str, Any]:
    facts = rounds[-1][-1].facts
    seconds = _seconds(rounds)
    first_tokens = [run.first_token_s for run in _runs(rounds) if run.first_token_s is not None]
    peaks = [record.peak_memory_bytes for case in rounds for record in case]
    figures: dict[str, Any] = {
        "dtype": facts.dtype,
        "versions": facts.versions,
        "seconds": sum(seconds),
        "median_seconds": median(seconds),
        "median_first_token_s": median(first_tokens) if first_tokens else None,
        "decode_tokens_per_s": _decode_rate(_runs(rounds)) if has_tokens else None,
        "peak_memory_bytes": max((peak for peak in peaks if peak is not None), default=None),
        "same_tokens_as_ours": _num_same(rounds, ours) if has_tokens else None,
    }
    if not has_tokens:
        first_round = [case[0].run for case in rounds]
        figures["exact"] = sum(bool(run.is_exact) for run in first_round)
        figures["statuses"] = dict(Counter(run.status for run in first_round))
    return figures


def _runs(rounds: Rounds) -> list[SpeedRun]:
    return [record.run for case in rounds for record in case]


def _seconds(rounds: Rounds) -> list[float]:
    """For each case the median of its rounds."""
    return [median(record.run.seconds for record in case) for case in rounds]


def _decode_rate(runs: Sequence[SpeedRun]) -> float | None:
    """Tokens a second behind those that came first; None where all came at once."""
    timed = [(run, run.first_token_s) for run in runs if run.first_token_s is not None]
    seconds = sum(run.seconds - first_s for run, first_s in timed)
    num_tokens = sum(len(run.token_ids) - run.num_first_tokens for run, _ in timed)
    return num_tokens / seconds if num_tokens and seconds > 0 else None


def _num_same(rounds: Rounds, ours: Rounds) -> int:
    """Cases in which all rounds wrote the tokens of ours."""
    return sum(
        all(
            record.run.token_ids == other.run.token_ids
            for record, other in zip(case, own, strict=True)
        )
        for case, own in zip(rounds, ours, strict=True)
    )


def _stats(rounds: Rounds) -> list[RequestStats]:
    stats = [run.stats for run in _runs(rounds)]
    return [one for one in stats if one is not None]


def _decode_s(rounds: Rounds) -> float:
    return sum(stats.decode_s for stats in _stats(rounds))


def _drafts(stats: Sequence[RequestStats], *, k: int) -> dict[str, Any]:
    """What passes brought, what a drafter that is never wrong had brought, and why less."""
    total = RequestStats.total(stats)
    num_tokens, num_passes = total.num_output_tokens, total.decode_passes
    lost = total.losses.by_cause
    num_lost = num_passes * (k + 1) - num_tokens
    assert num_lost == sum(lost.values()), "every token that a pass did not bring has a cause"
    return {
        "drafted": total.drafted,
        "accepted": total.accepted,
        "acceptance": total.accepted / max(1, total.drafted),
        "tokens_per_decode_pass": num_tokens / num_passes,
        "tokens_per_target_pass": num_tokens / total.target_passes,
        "never_wrong_per_decode_pass": ceiling(
            [one.num_output_tokens for one in stats], max_draft_tokens=k
        )["pooled"],
        "tokens": num_tokens,
        "decode_passes": num_passes,
        "target_passes": total.target_passes,
        "lost_tokens": num_lost,
        "lost_by_cause": {
            cause: {
                "tokens": count,
                "share_of_loss": count / max(1, num_lost),
                "per_decode_pass": count / num_passes,
            }
            for cause, count in sorted(lost.items(), key=lambda item: -item[1])
        },
        "by_reference": {
            name: {"drafted": figures.drafted, "accepted": figures.accepted}
            for name, figures in total.by_reference.items()
        },
    }


def format_speed_report(report: Mapping[str, Any]) -> str:
    """The report as tables to be read."""
    settings, machine = report["settings"], report["machine"]
    lines = [
        f"{report['cases']} cases, rounds: {report['rounds']}; {report['prompt_tokens']} prompt and"
        f" {report['answer_tokens']} answer tokens, constraint none, scope file,"
        f" k = {settings['k']}, draft budget {settings['draft_budget']}",
        f"{settings['model']}; {machine['processor']}, threads: {settings['threads']}",
        "",
        f"{'contender':<22}{'dtype':>9}{'seconds':>10}{'ours is':>9}{'95 %':>16}{'median s':>10}"
        f"{'first s':>9}{'tokens/s':>10}{'MB':>7}{'same tokens':>13}",
        *(
            _format_contender(name, figures, num_cases=report["cases"])
            for name, figures in report["contenders"].items()
        ),
        "",
        "decode alone against speculation off:"
        f" {report['decode_ratio_against_speculation_off']:.2f}x; speculation off against"
        f" transformers' greedy: {report['speculation_off_against_transformers_greedy']:.2f}x",
    ]
    if DEFAULT in report["contenders"]:
        default = report["contenders"][DEFAULT]
        lines.append(f"default: exact in {default['exact']} of {report['cases']} cases")
    return "\n".join([*lines, "", *_format_drafts(report["drafts"])])


def _format_contender(name: str, figures: Mapping[str, Any], *, num_cases: int) -> str:
    low, high = figures["ratio_95"]
    peak, same = figures["peak_memory_bytes"], figures["same_tokens_as_ours"]
    ratio = "-" if name == OURS else f"{figures['ratio']:.2f}x"
    interval = "-" if name == OURS else f"{low:.2f}-{high:.2f}"
    return (
        f"{name:<22}{figures['dtype']:>9}{figures['seconds']:>10.2f}{ratio:>9}{interval:>16}"
        f"{figures['median_seconds']:>10.2f}{_or_dash(figures['median_first_token_s'], 2):>9}"
        f"{_or_dash(figures['decode_tokens_per_s'], 0):>10}"
        f"{'-' if peak is None else f'{peak / 1e6:.0f}':>7}"
        f"{'-' if same is None else f'{same} of {num_cases}':>13}"
    )


def _or_dash(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _format_drafts(drafts: Mapping[str, Any]) -> list[str]:
    return [
        f"ours: {drafts['tokens_per_decode_pass']:.2f} tokens per decode pass"
        f" ({drafts['never_wrong_per_decode_pass']:.2f} if drafts were never wrong),"
        f" {drafts['tokens_per_target_pass']:.2f} with the passes of prompts counted;"
        f" accepted {drafts['acceptance']:.1%} of the drafts",
        f"{drafts['lost_tokens']} tokens lost against k + 1 in each of"
        f" {drafts['decode_passes']} decode passes:",
        *(
            f"  {cause:<22}{figures['tokens']:>8}{figures['share_of_loss']:>9.1%}"
            f"{figures['per_decode_pass']:>8.2f} a pass"
            for cause, figures in drafts["lost_by_cause"].items()
            if figures["tokens"]
        ),
    ]
