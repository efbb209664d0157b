"""Runs the same requests on a device with drafts and without, in graphs or not."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine_runs import ScriptedProposer, running_engine

from batching.config import Device, Dtype, EngineConfig, SchedulerConfig
from batching.request import EngineRequest, SamplingParams


@dataclass(frozen=True)
class DeviceRuns:
    """A model, a device, and the requests to run."""

    model_dir: Path
    device: Device
    num_requests: int = 30
    max_tokens: int = 80

    def make_requests(self, scripts: Sequence[Sequence[int]] | None = None) -> list[EngineRequest]:
        """Short and long prompts; `scripts`, if given, are the drafts."""
        generator = random.Random(4)
        lens = [generator.choice([5, 64, 700]) for _ in range(self.num_requests)]
        return [
            EngineRequest(
                request_id=f"request-{index}",
                prompt_token_ids=tuple(generator.randrange(3, 259) for _ in range(prompt_len)),
                sampling=SamplingParams(max_tokens=self.max_tokens),
                proposer=ScriptedProposer(scripts[index]) if scripts else None,
            )
            for index, prompt_len in enumerate(lens)
        ]

    def answer(
        self,
        *,
        dtype: Dtype = "float32",
        scripts: Sequence[Sequence[int]] | None = None,
        use_cuda_graphs: bool = True,
    ) -> list[list[int]]:
        """The tokens that an engine writes for up to 16 simultaneous requests."""
        config = EngineConfig(
            model_path=self.model_dir,
            device=self.device,
            dtype=dtype,
            kv_memory_bytes=16 << 20,
            use_cuda_graphs=use_cuda_graphs,
            scheduler=SchedulerConfig(max_running=16),
        )
        with running_engine(config) as running:
            return [outcome.token_ids for outcome in running.run(self.make_requests(scripts))]


def wrong_now_and_then(answers: Sequence[Sequence[int]]) -> list[list[int]]:
    """Replace one token in ten by another one."""
    generator = random.Random(5)
    return [
        [(token + 1) % 259 if generator.random() < 0.1 else token for token in tokens]
        for tokens in answers
    ]


def share_behind_a_difference(
    left: Sequence[Sequence[int]], right: Sequence[Sequence[int]]
) -> float:
    """The share of tokens at or behind the first difference of their answer."""
    num_same = sum(
        next((at for at, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), len(ours))
        for ours, theirs in zip(left, right, strict=True)
    )
    return 1 - num_same / sum(map(len, left))
