"""The report of `bench latency`: percentiles, shares, and region scope against file scope."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from apply_service.evaluate.case_statistics import nearest_rank
from apply_service.evaluate.edit_session import EditTiming

PATHS = ("no_model", "cold", "warm", "repeat", "file_cold", "file_warm")
WANTED_WARM_S = 1.5
WANTED_FILE_RATIO = 5.0
WANTED_TEXT_SHARE = 0.05


class TimedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One edit by one way; of the engine's time `draft_s` went to plans, `model_s` to the model."""

    timing: EditTiming
    draft_s: float
    model_s: float

    @property
    def text_s(self) -> float:
        """Planning (prompts included), drafting and verdict."""
        timing = self.timing
        return timing.plan_s + timing.prompt_s + self.draft_s + timing.verdict_s


class LatencyRow(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of one case in one scope, by way."""

    case_id: str
    scope: str
    num_lines: int
    runs: dict[str, TimedRun]


Pair = tuple[LatencyRow, LatencyRow]


def summarise_latency(rows: Sequence[LatencyRow], pairs: Sequence[Pair]) -> dict[str, Any]:
    """The figures of each way over all cases that took it, and of the cases in both scopes."""
    runs: dict[str, list[TimedRun]] = {path: [] for path in PATHS}
    problems: Counter[str] = Counter()
    for row in [*rows, *(whole for _, whole in pairs)]:
        for path, run in row.runs.items():
            is_decided = path != "no_model" and not run.timing.target_passes
            if run.timing.problem:
                problems[run.timing.problem] += 1
            elif not is_decided:
                runs[path].append(run)
    return {
        "edits": len(rows),
        "problems": dict(problems),
        "paths": {path: _path_figures(taken) for path, taken in runs.items() if taken},
        "region_against_file": {
            path: _ratio_figures([one for one in pairs if path in one[0].runs], path)
            for path in ("cold", "warm")
        },
        "wanted": {
            "warm_p50_s": WANTED_WARM_S,
            "file_ratio": WANTED_FILE_RATIO,
            "text_share": WANTED_TEXT_SHARE,
        },
    }


def _path_figures(runs: Sequence[TimedRun]) -> dict[str, Any]:
    seconds = sorted(run.timing.total_s for run in runs)
    total_s = sum(seconds)
    parts = {
        "plan": sum(run.timing.plan_s for run in runs),
        "prompt": sum(run.timing.prompt_s for run in runs),
        "draft": sum(run.draft_s for run in runs),
        "verdict": sum(run.timing.verdict_s for run in runs),
        "model": sum(run.model_s for run in runs),
    }
    parts["other"] = total_s - sum(parts.values())
    num_prompt = sum(run.timing.num_prompt_tokens for run in runs)
    num_cached = sum(run.timing.num_cached_tokens for run in runs)
    shares = sorted(run.text_s / run.timing.total_s for run in runs)
    return {
        "n": len(runs),
        "p50_s": nearest_rank(seconds, 0.5),
        "p90_s": nearest_rank(seconds, 0.9),
        "max_s": seconds[-1],
        "statuses": dict(Counter(run.timing.status for run in runs)),
        "prompt_tokens_p50": nearest_rank(
            sorted(run.timing.num_prompt_tokens for run in runs), 0.5
        ),
        "cached_share": num_cached / max(1, num_prompt),
        "shares": {name: part / total_s for name, part in parts.items()},
        "text_share": sum(run.text_s for run in runs) / total_s,
        "text_share_p50": nearest_rank(shares, 0.5),
        "not_model_share": 1.0 - parts["model"] / total_s,
    }


def _ratio_figures(pairs: Sequence[Pair], path: str) -> dict[str, Any]:
    """File scope over region scope: of the sums of seconds, and the median of the cases' ratios."""
    if not pairs:
        return {"n": 0}
    region_s = [region.runs[path].timing.total_s for region, _ in pairs]
    file_s = [whole.runs[f"file_{path}"].timing.total_s for _, whole in pairs]
    ratios = sorted(slow / quick for quick, slow in zip(region_s, file_s, strict=True))
    lines = sorted(region.num_lines for region, _ in pairs)
    return {
        "n": len(pairs),
        "region_p50_s": nearest_rank(sorted(region_s), 0.5),
        "file_p50_s": nearest_rank(sorted(file_s), 0.5),
        "ratio_of_sums": sum(file_s) / sum(region_s),
        "ratio_p50": nearest_rank(ratios, 0.5),
        "ratio_min": ratios[0],
        "lines": [lines[0], lines[-1]],
    }


def format_latency_report(report: dict[str, Any]) -> str:
    """The figures as tables."""
    versions = report["versions"]
    lines = [
        f"{report['edits']} edits; model {report['model']}, {report['dtype']},"
        f" {report['threads']} threads, {report['processor']}, torch {versions['torch']}",
        "",
        f"{'way':<12}{'n':>5}{'p50 s':>9}{'p90 s':>9}{'max s':>9}{'prompt':>8}{'cached':>8}"
        f"{'plan':>8}{'prompts':>8}{'draft':>8}{'verdict':>8}{'model':>8}{'other':>8}",
    ]
    for path, figures in report["paths"].items():
        shares = "".join(f"{share:>8.1%}" for share in figures["shares"].values())
        lines.append(
            f"{path:<12}{figures['n']:>5}{figures['p50_s']:>9.3f}{figures['p90_s']:>9.3f}"
            f"{figures['max_s']:>9.3f}{figures['prompt_tokens_p50']:>8.0f}"
            f"{figures['cached_share']:>8.0%}{shares}"
        )
    lines += [
        "",
        "no_model: use_model auto; all others: use_model always, so that a model is asked",
    ]
    lines += [_share_line(path, report) for path in report["paths"] if path != "no_model"]
    for path, figures in report["region_against_file"].items():
        if figures["n"]:
            lines.append(
                f"{path}, {figures['n']} files of {figures['lines'][0]} to {figures['lines'][1]}"
                f" lines: scope file takes {figures['ratio_of_sums']:.1f} times as long (median"
                f" {figures['ratio_p50']:.1f}, least {figures['ratio_min']:.1f};"
                f" wanted {WANTED_FILE_RATIO:.0f})"
            )
    if report["long_files_over_the_context"]:
        lines.append(
            f"{report['long_files_over_the_context']} long files do not fit the model's context"
        )
    if report["problems"]:
        lines.append(f"without a result: {report['problems']}")
    return "\n".join(lines)


def _share_line(path: str, report: dict[str, Any]) -> str:
    figures = report["paths"][path]
    return (
        f"{path}: planning, prompts, drafting and verdict are {figures['text_share']:.1%} of the"
        f" time (median edit {figures['text_share_p50']:.1%}; wanted {WANTED_TEXT_SHARE:.0%});"
        f" all but the model {figures['not_model_share']:.1%}"
    )
