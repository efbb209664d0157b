"""The figures of an accuracy run: shares with counts and intervals, as JSON and as text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from apply_service.evaluate.case_statistics import count_summary, wilson_interval
from apply_service.evaluate.cases.case_result import RESULT_STATUSES, CaseResult

_EDIT_SIZES = ((5, "1-5"), (20, "6-20"), (60, "21-60"))
_LARGEST_EDIT = "more than 60"
_LABELS = {
    "exact": "exact",
    "exact_modulo_final_newline": "exact but for the final newline",
    "exact_ignoring_blank_lines": "exact but for blank lines",
}
_TEXT_WIDTH = 34


def summarise_accuracy(results: Sequence[CaseResult]) -> dict[str, Any]:
    """All figures of a run. Cases that must be refused are counted apart from the others.

    Shares are between 0 and 1, None where nothing was counted; `counts` has what they come from.
    """
    answered = [result for result in results if not result.case.must_refuse]
    refused = [result for result in results if result.case.must_refuse]
    statuses = {name: _num(answered, _has_status(name)) for name in RESULT_STATUSES}
    counts = {
        "exact": (_num(answered, lambda r: r.is_exact), len(answered)),
        "exact_modulo_final_newline": (
            _num(answered, lambda r: r.is_exact_modulo_final_newline),
            len(answered),
        ),
        "exact_ignoring_blank_lines": (
            _num(answered, lambda r: r.is_exact_ignoring_blank_lines),
            len(answered),
        ),
        "silent_errors": (_num(answered, lambda r: r.is_silent_error), len(answered)),
        "silent_losses": (_num(answered, lambda r: r.is_silent_loss), len(answered)),
        "coverage": (statuses["applied"], len(answered)),
        "exact_when_applied": (
            _num(answered, lambda r: r.is_exact and r.answer.status == "applied"),
            statuses["applied"],
        ),
        "rejected_though_exact": (_num(answered, lambda r: r.is_false_alarm), len(answered)),
        "certain": (_num(answered, lambda r: r.is_certain), len(answered)),
        "certain_exact": (
            _num(answered, lambda r: r.is_certain and r.is_exact),
            _num(answered, lambda r: r.is_certain),
        ),
        "refused_or_flagged": (_num(refused, lambda r: r.is_refused_or_flagged), len(refused)),
    }
    shares = {name: _share(*count) for name, count in counts.items()}
    return {
        "cases": len(answered),
        **{name: shares[name] for name in _LABELS},
        "silent_error_rate": shares["silent_errors"],
        "silent_loss_rate": shares["silent_losses"],
        "coverage": shares["coverage"],
        "status": {name: _share(count, len(answered)) for name, count in statuses.items()},
        "certain_merges": {"claimed": shares["certain"], "exact": shares["certain_exact"]},
        **_speed(answered),
        "bound": _bound(answered),
        "must_refuse": {"cases": len(refused), "right": shares["refused_or_flagged"]},
        "counts": {name: {"count": hits, "n": n} for name, (hits, n) in counts.items()},
        "wilson_95": {name: _rounded(wilson_interval(*count)) for name, count in counts.items()},
        "status_counts": statuses,
        "source_counts": _source_counts(answered),
        "by_language": _by_group(answered, lambda r: r.language),
        "by_edit_size": _by_group(answered, _edit_size, order=[*_size_names()]),
        "by_style": _by_group(answered, lambda r: r.case.style or "unknown"),
    }


def format_accuracy_report(report: Mapping[str, Any]) -> str:
    """The figures of `summarise_accuracy` for people: every share with count, n and interval."""
    lines = [
        *(_format_share(label, report, name) for name, label in _LABELS.items()),
        "",
        _format_share("silent errors", report, "silent_errors"),
        _format_share("  of which a line is lost", report, "silent_losses"),
        _format_share("  at a coverage (applied) of", report, "coverage"),
        _format_share("exact among applied", report, "exact_when_applied"),
        "",
        _format_share("merges called certain", report, "certain"),
        _format_share("  exact there", report, "certain_exact"),
        "",
        *_format_statuses(report),
    ]
    if report["must_refuse"]["cases"]:
        lines.append(_format_share("must refuse: refused or flagged", report, "refused_or_flagged"))
    lines += ["", _format_speed(report), *_format_bound(report["bound"])]
    for name in ("language", "edit_size"):
        lines += ["", *_format_groups(name.replace("_", " "), report[f"by_{name}"])]
    return "\n".join(lines)


def _num(results: Sequence[CaseResult], holds: Callable[[CaseResult], bool]) -> int:
    return sum(1 for result in results if holds(result))


def _has_status(name: str) -> Callable[[CaseResult], bool]:
    return lambda result: result.answer.status == name


def _share(count: int, total: int) -> float | None:
    return round(count / total, 4) if total else None


def _rounded(interval: tuple[float, float]) -> list[float]:
    return [round(border, 4) for border in interval]


def _speed(results: Sequence[CaseResult]) -> dict[str, float | None]:
    """Seconds of cases that were answered; tokens and passes pooled where they are known."""
    seconds = sorted(r.answer.seconds for r in results if r.answer.status != "failed")
    counted = [
        (r.answer.num_output_tokens or 0, r.answer.num_target_passes)
        for r in results
        if r.answer.num_target_passes
    ]
    num_passes = sum(passes or 0 for _, passes in counted)
    num_tokens = sum(tokens for tokens, _ in counted)
    return {
        "seconds_p50": _quantile(seconds, 0.5),
        "seconds_p90": _quantile(seconds, 0.9),
        "tokens_per_target_pass": round(num_tokens / num_passes, 2) if num_passes else None,
    }


def _bound(results: Sequence[CaseResult]) -> dict[str, Any] | None:
    """What was left to a model that was bound to the valid merges; None if none was."""
    answers = [r.answer for r in results if r.answer.num_decisions is not None]
    num_tokens = sum(answer.num_output_tokens or 0 for answer in answers)
    if not num_tokens:
        return None
    num_forced = sum(answer.num_forced_tokens or 0 for answer in answers)
    return {
        "cases": len(answers),
        "forced": round(num_forced / num_tokens, 5),
        "decisions": count_summary([answer.num_decisions or 0 for answer in answers]),
        "target_passes": count_summary([answer.num_target_passes or 0 for answer in answers]),
    }


def _quantile(values: Sequence[float], share: float) -> float | None:
    """Nearest rank of sorted values."""
    return round(values[math.ceil(len(values) * share) - 1], 5) if values else None


def _source_counts(results: Sequence[CaseResult]) -> dict[str, int]:
    sources = [r.answer.source for r in results if r.is_returned and r.answer.source]
    return {name: sources.count(name) for name in sorted(set(sources))}


def _edit_size(result: CaseResult) -> str:
    for most, name in _EDIT_SIZES:
        if result.num_changed_lines <= most:
            return name
    return _LARGEST_EDIT


def _size_names() -> Iterator[str]:
    yield from (name for _, name in _EDIT_SIZES)
    yield _LARGEST_EDIT


def _by_group(
    results: Sequence[CaseResult],
    name_of: Callable[[CaseResult], str],
    *,
    order: Sequence[str] = (),
) -> dict[str, dict[str, Any]]:
    groups: dict[str, list[CaseResult]] = {name: [] for name in order}
    for result in sorted(results, key=name_of):
        groups.setdefault(name_of(result), []).append(result)
    return {
        name: {
            "cases": len(group),
            "exact": _num(group, lambda r: r.is_exact),
            "applied": _num(group, _has_status("applied")),
            "silent_errors": _num(group, lambda r: r.is_silent_error),
        }
        for name, group in groups.items()
        if group
    }


def _format_share(label: str, report: Mapping[str, Any], name: str) -> str:
    count, total = report["counts"][name]["count"], report["counts"][name]["n"]
    low, high = report["wilson_95"][name]
    shown = f"{count / total:>7.1%}  [{low:.1%}, {high:.1%}]" if total else f"{'-':>7}"
    return f"{label:<{_TEXT_WIDTH}}{count:>6} of {total:<6}{shown}"


def _format_statuses(report: Mapping[str, Any]) -> Iterator[str]:
    counts = report["status_counts"].items()
    yield "status: " + ", ".join(f"{name} {count}" for name, count in counts if count)
    if report["counts"]["rejected_though_exact"]["count"]:
        yield _format_share("rejected though exact", report, "rejected_though_exact")
    if report["source_counts"]:
        sources = report["source_counts"].items()
        yield "decided by: " + ", ".join(f"{name} {count}" for name, count in sources)


def _format_speed(report: Mapping[str, Any]) -> str:
    if report["seconds_p50"] is None:
        return "no case was answered"
    passes = report["tokens_per_target_pass"]
    told = "" if passes is None else f", {passes:.1f} tokens per target pass"
    return f"seconds: p50 {report['seconds_p50']:.3f}, p90 {report['seconds_p90']:.3f}{told}"


def _format_bound(bound: Mapping[str, Any] | None) -> Iterator[str]:
    if bound is None:
        return
    decisions, passes = bound["decisions"], bound["target_passes"]
    yield (
        f"{bound['cases']} cases bound to the valid merges: {bound['forced']:.2%} of the tokens"
        f" forced; decisions per case: median {decisions['median']}, p90 {decisions['p90']};"
        f" target passes per case: mean {passes['mean']:.2f}, median {passes['median']},"
        f" p90 {passes['p90']}"
    )


def _format_groups(title: str, groups: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    yield (
        f"{'by ' + title:<{_TEXT_WIDTH}}{'cases':>7}{'exact':>8}{'share':>8}{'applied':>9}"
        f"{'silent':>8}"
    )
    for name, figures in groups.items():
        yield (
            f"{name:<{_TEXT_WIDTH}}{figures['cases']:>7}{figures['exact']:>8}"
            f"{figures['exact'] / figures['cases']:>8.1%}{figures['applied']:>9}"
            f"{figures['silent_errors']:>8}"
        )
