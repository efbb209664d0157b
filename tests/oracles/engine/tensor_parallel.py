"""Ranks that share a model against one process: logits, texts, speculation, memory, a killed rank.

`python tests/oracle.py engine.tensor_parallel` takes a random model of 8 heads and 4 KV heads to 2
and 4 ranks and the embedded model to 3, in float32 over gloo, one thread a rank. It prints a row
for each, and exits with 1 if a text differs where the logits were not nearly equal.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from drafter_texts import texts
from engine_runs import RunningEngine, ScriptedProposer
from rank_processes import memory_bytes, rank_ids
from remote_engines import wait_until
from tiny_model import write_tiny_model
from torch import Tensor

from apply_service.models.store import resolve_model
from apply_service.prompts.tokenizer import PromptTokenizer
from batching.config import CacheConfig, EngineConfig, SchedulerConfig
from batching.drafters.drafter import LAST_HIDDEN, DraftAsk, Features, ObservedRequest
from batching.engine import Engine
from batching.errors import EngineLostError
from batching.events import Failed
from batching.model.loading import PagedKV
from batching.model.parallel.runner import start_ranks
from batching.model.runner import ModelRunner
from batching.recipes import EditDrafts
from batching.request import EngineRequest, SamplingParams
from batching.step_plan import ScheduledRequest, StepPlan
from lookup.proposer import EMPTY_DRAFT, Draft, Proposer

# Two logits that are nearer than this may change places.
TOLERANCE = 1e-3
MIB = 1 << 20


@dataclass(frozen=True)
class Model:
    """A model, and the requests that are made of it."""

    name: str
    path: Path
    prompts: Sequence[tuple[int, ...]]
    num_tokens: int

    def config(self, num_ranks: int) -> EngineConfig:
        """So few blocks that prompts come back from host memory."""
        num_bytes = 1024 * (45 << 10) if self.name == "embedded" else 4096 * 512
        return EngineConfig(
            model_path=self.path,
            kv_memory_bytes=num_bytes // num_ranks,
            num_threads=1,
            cache=CacheConfig(memory_bytes=128 * MIB, chunk_tokens=32),
            scheduler=SchedulerConfig(max_running=64, max_waiting=len(self.prompts)),
            tensor_parallel=num_ranks,
        )

    def requests(
        self, scripts: Sequence[Sequence[int]] | None = None, *, temperature: float = 0.0
    ) -> list[EngineRequest]:
        """One for each prompt; with `scripts` they draft these, a fifth of the tokens wrong.

        Sampled ones draft trees of both.
        """

        def proposer(case: int) -> Proposer | EditDrafts | None:
            if scripts is None:
                return None
            right = scripts[case]
            wrong = [token ^ 1 if at % 5 == 4 else token for at, token in enumerate(right)]
            if temperature:
                original = self.prompts[case]
                return EditDrafts(original=original, snippet_segments=(), merge=wrong, rival=right)
            return ScriptedProposer(wrong)

        return [
            EngineRequest(
                request_id=f"case-{case}",
                prompt_token_ids=prompt,
                sampling=SamplingParams(
                    max_tokens=self.num_tokens, temperature=temperature, seed=case
                ),
                proposer=proposer(case),
            )
            for case, prompt in enumerate(self.prompts)
        ]


class HiddenRows:
    """A drafter that drafts nothing, for the hidden rows that it makes a runner keep."""

    name = "hidden-rows"
    taps: Sequence[int] = (LAST_HIDDEN,)
    kv: PagedKV | None = None

    def observe(self, requests: Sequence[ObservedRequest], features: Features) -> None:
        """Nothing is kept."""

    def draft(self, asks: Sequence[DraftAsk]) -> list[Draft]:
        """Nothing."""
        return [EMPTY_DRAFT for _ in asks]

    def forget(self, request_id: str) -> None:
        """Nothing is kept."""


@torch.inference_mode()
def all_logits(runner: ModelRunner, token_ids: Sequence[int]) -> Tensor:
    """Logits [num_tokens, vocab_size] of a text from its beginning on."""
    scheduled = ScheduledRequest(
        request_id="text",
        token_ids=tuple(token_ids),
        start=0,
        block_ids=tuple(range(-(-len(token_ids) // 16))),
        draft=None,
        has_logits=True,
        output_position=0,
        sampling=SamplingParams(max_tokens=1),
    )
    pending = runner.launch(StepPlan((scheduled,)))
    return runner.target.logits(pending.features[LAST_HIDDEN])


@contextmanager
def running_model(config: EngineConfig) -> Iterator[tuple[ModelRunner, RunningEngine]]:
    """A runner whose hidden rows are kept, and an engine that has it.

    The runner may be asked before the first request, and of one process after the engine's end.
    """
    lead = start_ranks(config) if config.tensor_parallel > 1 else None
    runner = lead or ModelRunner(config)
    runner.attach([HiddenRows()])
    close = None if lead is None else lead.crew.close
    engine = Engine(config.scheduler, runner, config.cache, close_device=close)
    if lead is not None:
        lead.crew.watch(engine.lose)
    try:
        yield runner, RunningEngine(engine)
    finally:
        engine.stop()


class OneProcess:
    """What one process computes and writes."""

    def __init__(self, model: Model) -> None:
        self.model = model
        with running_model(model.config(1)) as (self.runner, running):
            self.logits = [all_logits(self.runner, prompt) for prompt in model.prompts[:8]]
            self.texts = texts(running, model.requests())

    def gap(self, case: int, written: Sequence[int]) -> float:
        """How far the two largest logits are apart behind a prompt and the beginning of a text."""
        row = all_logits(self.runner, (*self.model.prompts[case], *written))[-1]
        first, second = row.topk(2).values.tolist()
        return float(first - second)


def compare(one: OneProcess, num_ranks: int) -> bool:
    """Print what so many ranks come to, and kill one of them; whether nothing is wrong."""
    model = one.model
    with running_model(model.config(num_ranks)) as (runner, running):
        own = [all_logits(runner, prompt) for prompt in model.prompts[:8]]
        ranks = rank_ids(os.getpid())
        anonymous, peak = (
            max(memory_bytes(rank, field) for rank in ranks) for field in ("RssAnon", "VmHWM")
        )
        plain = texts(running, model.requests())
        speculated = texts(running, model.requests(plain))
        sampled = texts(running, model.requests(temperature=0.8))
        sampled_too = texts(running, model.requests(sampled, temperature=0.8))
        drafted, accepted, hits = _figures(running)
        is_ended = kill_one(model, running)
    most = max(float((a - b).abs().max()) for a, b in zip(own, one.logits, strict=True))
    different = [case for case, text in enumerate(plain) if text != one.texts[case]]
    wrong = [case for case in different if not _is_near_tie(one, case, plain[case])]
    same = sum(map(list.__eq__, plain, speculated)) + sum(map(list.__eq__, sampled, sampled_too))
    is_right = is_ended and most <= TOLERANCE and not wrong and same == 2 * len(plain)
    cells = (
        f"{model.name}, {num_ranks}",
        f"{most:.1e}",
        f"{len(plain) - len(different)} of {len(plain)}",
        f"{len(different) - len(wrong)}; {len(wrong)}",
        f"{same} of {2 * len(plain)}",
        f"{drafted}, {accepted}",
        hits,
        f"{anonymous // MIB}, {peak // MIB}",
    )
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)
    return is_right


def _figures(running: RunningEngine) -> tuple[int, int, int]:
    """Drafted and accepted tokens, and tokens that came back from host memory."""
    stats = running.engine.stats()
    of_drafts = stats.by_reference.values()
    return (
        sum(one.drafted for one in of_drafts),
        sum(one.accepted for one in of_drafts),
        sum(tier.hit_tokens for tier in stats.tiers),
    )


def _is_near_tie(one: OneProcess, case: int, text: Sequence[int]) -> bool:
    expected = one.texts[case]
    pairs = zip(text, expected, strict=False)
    at = next((at for at, (a, b) in enumerate(pairs) if a != b), None)
    return at is not None and one.gap(case, expected[:at]) < TOLERANCE


def kill_one(model: Model, running: RunningEngine) -> bool:
    """Kill the last rank under load; whether all requests end, and all ranks."""
    for request in model.requests()[:32]:
        running.submit(request)
    running.take_event()
    os.kill(rank_ids(os.getpid())[-1], signal.SIGKILL)
    outcomes = running.wait_all().values()
    wait_until(lambda: running.engine.is_lost)
    wait_until(lambda: not rank_ids(os.getpid()))
    lost = [one.last for one in outcomes if isinstance(one.last, Failed)]
    print(f"killed, {len(lost)} of {len(outcomes)} requests failed: {lost[0].error}", flush=True)
    return all(isinstance(one.error, EngineLostError) for one in lost)


def memory_of_one(model: Model) -> str:
    """What one process takes, without and with the model: anonymous memory, and the peak."""
    oracle = str(Path(__file__).parents[2] / "oracle.py")
    command = [sys.executable, oracle, "engine.tensor_parallel", "--measure", str(model.path)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def measure(path: Path) -> None:
    """Print the memory of this process before and after it has loaded a model."""
    before = memory_bytes(os.getpid(), "RssAnon")
    runner = ModelRunner(EngineConfig(model_path=path, kv_memory_bytes=MIB, num_threads=1))
    after, peak = (memory_bytes(os.getpid(), field) for field in ("RssAnon", "VmHWM"))
    assert runner.num_blocks, "the model is needed to here"
    print(f"{before // MIB} before, {after // MIB} with the model, {peak // MIB} at most (MiB)")


def make_models(folder: Path, num_texts: int, num_tokens: int) -> tuple[Model, Model]:
    """The random one and the embedded one."""
    write_tiny_model(folder, seed=0, num_heads=8, num_kv_heads=4)
    generator = random.Random(3)
    prompts = [
        tuple(generator.randrange(3, 259) for _ in range(generator.choice([5, 31, 64, 120])))
        for _ in range(num_texts)
    ]
    embedded = resolve_model("embedded").path
    encode = PromptTokenizer.from_dir(embedded).encode
    lines = [
        line
        for path in sorted(Path(__file__).parent.glob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True)
    ]
    pieces = ["".join(lines[6 * case : 6 * case + 6]) for case in range(num_texts)]
    assert all(pieces), f"the oracles have no lines for {num_texts} prompts"
    return (
        Model("random", folder, prompts, num_tokens),
        Model("embedded", embedded, [tuple(encode(piece)) for piece in pieces], num_tokens),
    )


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--texts", type=int, default=210, help="of each model")
    parser.add_argument("--tokens", type=int, default=16, help="of each text")
    parser.add_argument("--model", choices=["random", "embedded"], help="default both")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.measure is not None:
        measure(options.measure)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        random_model, embedded = make_models(Path(folder), options.texts, options.tokens)
        print(
            "| model, ranks | logits differ by | texts equal | near ties; wrong | speculation on ="
            " off | drafted, accepted | tokens from host | MiB of a rank, at most |"
        )
        print("|---|---|---|---|---|---|---|---|")
        results = []
        if options.model != "embedded":
            one = OneProcess(random_model)
            results += [compare(one, 2), compare(one, 4)]
        if options.model != "random":
            print(f"one process, embedded: {memory_of_one(embedded)}")
            results.append(compare(OneProcess(embedded), 3))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
