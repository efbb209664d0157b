"""`python -m benchmarks cache`: what the prefix cache saves, over one process and over several.

`repeat`: one file, many snippets. `fleet`: a process with an empty memory and a Redis that another
one has filled, with `--gbit` over a slower link. `link`: reading from Redis against a bare socket.
`gate`: a link that is too slow, 1 MB/s unless `--gbit` says another.
`edits`: edits of one function, across one file, and of a file that grows. All but `repeat` and
`edits` need `--redis`, an empty server that the bench may write to.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal

import msgspec

from apply_service.apply.errors import ApplyError
from apply_service.config import parse_size
from apply_service.evaluate.cases.case_file import Case, read_cases
from apply_service.observe.progress import tracked
from batching.cache.redis.url import parse_redis_url
from batching.config import DEFAULT_CHUNK_TOKENS
from benchmarks.cache.edits import LineEdit, files_of, line_edits, marker_for, spread
from benchmarks.cache.job import CacheJob, CacheProcess, CacheRun, WorkerSettings
from benchmarks.cache.link import measure_link
from benchmarks.cache.throttled_proxy import ThrottledProxy

Constraint = Literal["none", "merge"]

_SLOW_GBIT = 0.008
_SLOWED_SCENARIOS = ("fleet", "gate")
_CHUNK_SIZES = (16, 32, 64, 128, 256)
# A function's edits stand within so many lines.
_FUNCTION_LINES = 45
_NUM_EDITED_FILES = 4


class CacheBenchError(ApplyError):
    """The bench lacks files or a server that it needs."""


@dataclass(frozen=True, slots=True)
class Bench:
    """The options of a run, and ways to start what it needs."""

    args: argparse.Namespace
    cases: Sequence[Case]

    def settings(self, *, url: str | None = None, has_tiers: bool = True) -> WorkerSettings:
        """A process with an empty memory; without tiers only the KV cache is there."""
        return WorkerSettings(
            model=self.args.model,
            cache_memory=parse_size(self.args.cache_memory) if has_tiers else 0,
            kv_memory=parse_size(self.args.kv_memory),
            redis_url=url,
            chunk_tokens=self.args.chunk_tokens,
            payload=self.args.payload,
            timeout_s=self.args.timeout_s,
            threads=self.args.threads,
        )

    @property
    def redis_url(self) -> str:
        """The server. Raises CacheBenchError if none was named."""
        if self.args.redis is None:
            raise CacheBenchError(f"the scenario {self.args.scenario_name} needs --redis URL")
        return str(self.args.redis)

    @contextmanager
    def link(self, gbit: float) -> Iterator[str]:
        """A URL by which the server answers with so many Gbit/s."""
        address = parse_redis_url(self.redis_url)
        with ThrottledProxy((address.host, address.port), bytes_per_s=gbit / 8 * 1e9) as proxy:
            yield f"redis://127.0.0.1:{proxy.port}"

    def job(self, case: Case, edit: LineEdit, *, salt: str = "", flush: bool = False) -> CacheJob:
        """One edit of a file; without constraint only the beginning of the answer is written."""
        return CacheJob(
            original=case.original,
            update=edit.update,
            path=case.path,
            scope=self.args.scope,
            constraint=self.args.constraint,
            salt=salt,
            max_tokens=self.args.max_tokens if self.args.constraint == "none" else None,
            flush=flush,
        )


def add_cache_command(subparsers: Any) -> None:
    """Register `cache` below `python -m benchmarks`."""
    parser = subparsers.add_parser("cache", help="what the prefix cache saves", description=__doc__)
    parser.add_argument("scenario_name", choices=sorted(_SCENARIOS), metavar="SCENARIO")
    parser.add_argument("--cases", type=Path, metavar="FILE", help="case file to take files from")
    parser.add_argument("--redis", metavar="URL", help="an empty server to write to")
    parser.add_argument("--gbit", type=float, help="speed of the link to it, in Gbit/s")
    parser.add_argument("--model", default="embedded", help="model name or folder")
    parser.add_argument("--constraint", choices=("none", "merge"), default="none")
    parser.add_argument("--scope", choices=("file", "auto"), default="file")
    parser.add_argument("--limit", type=int, default=10, help="files, or edits of one file")
    parser.add_argument("--min-lines", type=int, default=150, help="leave shorter files out")
    parser.add_argument("--max-lines", type=int, default=200, help="leave longer files out")
    parser.add_argument("--max-tokens", type=int, default=32, help="answer without constraint")
    parser.add_argument("--chunk-tokens", type=int, default=DEFAULT_CHUNK_TOKENS)
    parser.add_argument("--payload", choices=("exact", "float16", "int8"), default="exact")
    parser.add_argument("--timeout-s", type=float, default=1.0, help="longest wait for Redis")
    parser.add_argument("--cache-memory", default="256MiB")
    parser.add_argument("--kv-memory", default="384MiB")
    parser.add_argument("--threads", type=int, default=None, help="threads of torch")


def run_cache(args: argparse.Namespace) -> int:
    """Run one scenario and print its figures as JSON."""
    if args.gbit is not None and args.gbit <= 0.0:
        raise CacheBenchError(f"--gbit is {args.gbit}; a link needs more than 0 Gbit/s")
    if args.gbit is not None and args.scenario_name not in _SLOWED_SCENARIOS:
        slowed = " and ".join(_SLOWED_SCENARIOS)
        raise CacheBenchError(f"--gbit slows {slowed}, not {args.scenario_name}; leave it out")
    cases = [] if args.cases is None else list(read_cases(args.cases))
    report = _SCENARIOS[args.scenario_name](Bench(args, cases))
    figures = {"scenario": args.scenario_name, "constraint": args.constraint, **report}
    print(msgspec.json.format(msgspec.json.encode(figures), indent=2).decode())
    return 0


def _repeat(bench: Bench) -> dict[str, Any]:
    """One file, `--limit` snippets one after another in one process."""
    case, edits = next(_edited_files(bench, bench.args.limit))
    with CacheProcess(bench.settings()) as process:
        process.run(bench.job(case, edits[0], salt="warm-up"))
        jobs = [bench.job(case, edit, salt="repeat") for edit in edits]
        runs = [process.run(job) for job in tracked(jobs, name=lambda job: job.path)]
    first, later = runs[0], runs[1:]
    computed = [run.prompt_tokens - run.cached_tokens for run in runs]
    return {
        "file": case.id,
        "requests": len(runs),
        "prompt_tokens": first.prompt_tokens,
        "computed_tokens": computed,
        "computed_share": max(computed[1:]) / computed[0],
        "first_token_s": [round(run.first_token_s, 3) for run in runs],
        "first_token_speedup": first.first_token_s / median(run.first_token_s for run in later),
        "first_token_speedup_min": first.first_token_s / max(run.first_token_s for run in later),
        "total_s": [round(run.total_s, 3) for run in runs],
        "total_speedup": first.total_s / median(run.total_s for run in later),
    }


def _fleet(bench: Bench) -> dict[str, Any]:
    """`--limit` files: computed and stored by one process, loaded by another, cold in a third."""
    jobs = [
        bench.job(case, edits[0], flush=True)
        for case, edits in _some(_edited_files(bench, 1), bench.args.limit)
    ]
    with CacheProcess(bench.settings(url=bench.redis_url)) as process:
        for job in tracked(jobs, name=lambda job: job.path):
            process.run(job)
    with CacheProcess(bench.settings(has_tiers=False)) as process:
        cold = [process.run(job) for job in tracked(jobs, name=lambda job: job.path)]
    link = nullcontext(bench.redis_url) if bench.args.gbit is None else bench.link(bench.args.gbit)
    with link as url, CacheProcess(bench.settings(url=url)) as process:
        warm = [process.run(job) for job in tracked(jobs, name=lambda job: job.path)]
    return {
        "files": len(jobs),
        "gbit": bench.args.gbit,
        "prompt_tokens": sum(run.prompt_tokens for run in cold),
        "cached_tokens": sum(run.cached_tokens for run in warm),
        "same_tokens": _num_same(cold, warm),
        "first_request": {
            "cold_s": cold[0].first_token_s,
            "warm_s": warm[0].first_token_s,
            "speedup": cold[0].first_token_s / warm[0].first_token_s,
        },
        "first_token_speedup": _speedup(cold, warm),
        "total_speedup": median(a.total_s / b.total_s for a, b in zip(cold, warm, strict=True)),
        "first_token_s": {
            "cold": [round(run.first_token_s, 3) for run in cold],
            "warm": [round(run.first_token_s, 3) for run in warm],
        },
        "load_s": [round(run.load_s, 3) for run in warm],
        "decisions": _count(warm),
    }


def _gate(bench: Bench) -> dict[str, Any]:
    """`--limit` files behind a slow link, and behind none; each in a process of its own."""
    jobs = [
        bench.job(case, edits[0], flush=True)
        for case, edits in _some(_edited_files(bench, 1), bench.args.limit)
    ]
    gbit = bench.args.gbit or _SLOW_GBIT
    with CacheProcess(bench.settings(url=bench.redis_url)) as process:
        for job in tracked(jobs, name=lambda job: job.path):
            process.run(job)
    unflushed = [msgspec.structs.replace(job, flush=False) for job in jobs]
    rounds: dict[str, list[CacheRun]] = {"without": [], "slow": [], "fast": []}
    with (
        bench.link(gbit) as slow_url,
        CacheProcess(bench.settings()) as without,
        CacheProcess(bench.settings(url=slow_url)) as slow,
        CacheProcess(bench.settings(url=bench.redis_url)) as fast,
    ):
        processes = {"without": without, "slow": slow, "fast": fast}
        for turn, job in enumerate(unflushed):
            names = list(processes)
            for name in names[turn % 3 :] + names[: turn % 3]:
                rounds[name].append(processes[name].run(job))
    baseline, throttled = rounds["without"], rounds["slow"]
    extra = [b.first_token_s - a.first_token_s for a, b in zip(baseline, throttled, strict=True)]
    return {
        "files": len(jobs),
        "gbit": gbit,
        "timeout_s": bench.args.timeout_s,
        "first_token_ratio_median": median(
            b.first_token_s / a.first_token_s for a, b in zip(baseline, throttled, strict=True)
        ),
        "total_ratio_median": median(
            b.total_s / a.total_s for a, b in zip(baseline, throttled, strict=True)
        ),
        "worst_extra_s": max(extra),
        "extra_s": [round(seconds, 3) for seconds in extra],
        "waited_s": [round(run.load_s, 3) for run in throttled],
        "fast_speedup": _speedup(baseline, rounds["fast"]),
        "same_tokens": sum(
            a.token_ids == b.token_ids for a, b in zip(baseline, throttled, strict=True)
        ),
        "decisions": {name: _count(runs) for name, runs in rounds.items()},
    }


def _link(bench: Bench) -> dict[str, Any]:
    """2,048 tokens of the embedded model, read by the tier and by a bare socket."""
    return measure_link(parse_redis_url(bench.redis_url), num_rounds=bench.args.limit)


def _edits(bench: Bench) -> dict[str, Any]:
    """Ten edits of one function, ten across the file, and a file that is edited in its middle."""
    limit = bench.args.limit
    files = []
    for case, edits in _edited_files(bench, 2 * limit):
        near = _densest(edits, limit)
        if near[-1].number - near[0].number <= _FUNCTION_LINES:
            files.append((case, edits, near))
        if len(files) == _NUM_EDITED_FILES:
            break
    runs: dict[str, list[CacheRun]] = {"one_function": [], "across": [], "growing": []}
    with CacheProcess(bench.settings()) as process:
        for case, edits, near in files:
            for name, group in (("one_function", near), ("across", spread(edits, limit))):
                salt = f"{name} {case.id}"
                runs[name] += [process.run(bench.job(case, edit, salt=salt)) for edit in group]
            late = spread(edits[len(edits) // 2 :], limit)
            runs["growing"] += _growing(bench, process, case, late)
    files_report = [f"{case.id} ({case.original.count(chr(10))} lines)" for case, _, _ in files]
    return {"files": files_report, **{name: _shares(group) for name, group in runs.items()}}


def _densest(edits: Sequence[LineEdit], count: int) -> list[LineEdit]:
    """The `count` edits in a row that stand closest together."""
    starts = range(len(edits) - count + 1)
    start = min(starts, key=lambda s: edits[s + count - 1].number - edits[s].number)
    return list(edits[start : start + count])


def _growing(
    bench: Bench, process: CacheProcess, case: Case, edits: Sequence[LineEdit]
) -> list[CacheRun]:
    """From the last edit to the first, each applied to the file before the next one is sent."""
    lines = case.original.split("\n")
    runs = []
    for edit in reversed(edits):
        now = msgspec.structs.replace(case, original="\n".join(lines))
        runs.append(process.run(bench.job(now, edit, salt=f"growing {case.id}")))
        lines[edit.number] = edit.changed_line
    return runs


def _shares(runs: Sequence[CacheRun]) -> dict[str, Any]:
    num_prompt = sum(run.prompt_tokens for run in runs)
    return {
        "edits": len(runs),
        "prompt_tokens": num_prompt,
        "computed_share": 1 - sum(run.cached_tokens for run in runs) / num_prompt,
        "computed_share_by_chunk_size": {
            str(size): 1 - _num_found(runs, size) / num_prompt for size in _CHUNK_SIZES
        },
        "first_token_s": {
            "median": median(run.first_token_s for run in runs),
            "max": max(run.first_token_s for run in runs),
        },
    }


def _num_found(runs: Sequence[CacheRun], chunk_tokens: int) -> int:
    """Tokens that a cache of whole chunks alone would have had, were it large enough."""
    seen = set[tuple[int, ...]]()
    num_found = 0
    for run in runs:
        for prompt in run.prompts:
            ends = range(chunk_tokens, len(prompt) + 1, chunk_tokens)
            prefixes = [prompt[:end] for end in ends]
            num_found += sum(p in seen for p in prefixes if len(p) < len(prompt)) * chunk_tokens
            seen.update(prefixes)
    return num_found


def _edited_files(bench: Bench, num_edits: int) -> Any:
    """Files of the wanted length with edits, those with too few left out."""
    if not bench.cases:
        raise CacheBenchError(f"the scenario {bench.args.scenario_name} needs --cases FILE")
    found = False
    for case in files_of(
        bench.cases, min_lines=bench.args.min_lines, max_lines=bench.args.max_lines
    ):
        lines = case.original.split("\n")
        edits = line_edits(lines, marker=marker_for(case.path) or "", start=0, stop=len(lines))
        if len(edits) >= num_edits:
            found = True
            yield case, edits if bench.args.scenario_name == "edits" else spread(edits, num_edits)
    if not found:
        raise CacheBenchError("no file of the case file has the wanted length and enough edits")


def _some(found: Any, count: int) -> list[Any]:
    return [item for _, item in zip(range(count), found, strict=False)]


def _speedup(cold: Sequence[CacheRun], warm: Sequence[CacheRun]) -> float:
    return median(a.first_token_s / b.first_token_s for a, b in zip(cold, warm, strict=True))


def _num_same(ours: Sequence[CacheRun], theirs: Sequence[CacheRun]) -> int:
    return sum(a.token_ids == b.token_ids for a, b in zip(ours, theirs, strict=True))


def _count(runs: Sequence[CacheRun]) -> dict[str, int]:
    decisions = [decision for run in runs for decision in run.decisions]
    return {decision: decisions.count(decision) for decision in sorted(set(decisions))}


_SCENARIOS: dict[str, Callable[[Bench], dict[str, Any]]] = {
    "repeat": _repeat,
    "fleet": _fleet,
    "link": _link,
    "gate": _gate,
    "edits": _edits,
}
