"""The figures of `benchmarks gpu` as text."""

from __future__ import annotations

from typing import Any

from benchmarks.gpu.attention import AttentionTimes


def format_report(report: dict[str, Any]) -> str:
    """All figures as tables of plain text."""
    roofline = report["roofline"]
    lines = [
        f"{report['shape']} in {report['dtype']} on {report['device']}, torch"
        f" {report['versions']['torch']};"
        f" context {report['context']}, {report['acceptance']:.1%} of the drafts hold,"
        f" {report['num_graphs']} graphs",
        f"measured: {roofline.bytes_per_s / 1e9:,.0f} GB/s copied,"
        f" {roofline.flops_per_s / 1e12:,.1f} TFLOP/s multiplied",
        "",
        f"{'batch':>6}{'k':>6}{'rows':>7}{'step ms':>10}{'host ms':>10}{'graph':>7}{'floor ms':>10}"
        f"{'x floor':>9}{'rows/s':>12}{'accepted/s':>12}",
    ]
    for step in report["steps"]:
        host = "-" if step["host_ms"] is None else f"{step['host_ms']:.3f}"
        lines.append(
            f"{step['batch']:>6}{step['k']:>6}{step['num_rows']:>7}{step['step_ms']:>10.3f}"
            f"{host:>10}{step['graph_share']:>7.0%}{step['floor_ms']:>10.3f}{step['floor_ratio']:>9.2f}"
            f"{step['rows_per_s']:>12,.0f}{step['accepted_per_s']:>12,.0f}"
        )
    if report["prompt_lookup"]:
        lines += ["", f"{'transformers, prompt lookup':>28}{'k':>6}{'passes':>8}{'tokens/s':>12}"]
    for times in report["prompt_lookup"]:
        lines.append(
            f"{times['num_tokens']:>21} tokens{times['k']:>6}{times['num_passes']:>8}"
            f"{times['tokens_per_s']:>12,.0f}"
        )
    lines += ["", _ATTENTION_HEADER, *map(_format_attention, report["attention"])]
    return "\n".join(lines)


_ATTENTION_HEADER = (
    f"{'context':>8}{'rows':>6}{'ours ms':>10}{'1-row ms':>10}{'SDPA ms':>10}{'flash ms':>10}"
    f"{'of copy':>9}{'of roof':>9}"
)


def _format_attention(times: AttentionTimes) -> str:
    flash = "-" if times.flash_ms is None else f"{times.flash_ms:.3f}"
    return (
        f"{times.context:>8}{times.num_rows:>6}{times.ours_ms:>10.3f}{times.single_rows_ms:>10.3f}"
        f"{times.sdpa_ms:>10.3f}{flash:>10}{times.bandwidth_share:>9.1%}{times.roofline_share:>9.1%}"
    )
