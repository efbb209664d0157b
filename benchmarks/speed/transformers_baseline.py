"""Transformers' own `generate` on the same weights and prompts: the rival of `benchmarks speed`.

`python -m benchmarks.speed.transformers_baseline MODEL_DIR [THREADS]` answers each line of
stdin, a RivalRequest as JSON, with a SpeedRun on stdout, whose first line has its WorkerFacts.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import msgspec
import torch
import transformers
from transformers import AutoModelForCausalLM

from benchmarks.speed.run import RivalRequest, SpeedRun, WorkerFacts


class _FirstTokens:
    """A streamer of `generate` that notes when the first tokens came, and how many they were."""

    def __init__(self) -> None:
        self.at: float | None = None
        self.count = 0
        self._has_prompt = False

    def put(self, token_ids: torch.Tensor) -> None:
        """The prompt first, then what was written."""
        if not self._has_prompt:
            self._has_prompt = True
        elif self.at is None:
            self.at, self.count = time.perf_counter(), token_ids.numel()

    def end(self) -> None:
        """Nothing is left to do."""


class TransformersBaseline:
    """A copy of the model with transformers' default attention, in float32 on the CPU."""

    def __init__(self, model_dir: Path) -> None:
        self._model = AutoModelForCausalLM.from_pretrained(model_dir, dtype=torch.float32).eval()

    @property
    def facts(self) -> WorkerFacts:
        """What it runs."""
        return WorkerFacts(
            dtype="float32",
            versions={"transformers": transformers.__version__, "torch": str(torch.__version__)},
        )

    def run(self, request: RivalRequest) -> SpeedRun:
        """Greedy decoding, with prompt lookup where the request says so."""
        inputs = torch.tensor([request.prompt_token_ids])
        first = _FirstTokens()
        started = time.perf_counter()
        output = self._model.generate(
            inputs,
            attention_mask=torch.ones_like(inputs),
            max_new_tokens=request.max_tokens,
            do_sample=False,
            eos_token_id=list(request.stop_token_ids),
            pad_token_id=request.stop_token_ids[0],
            prompt_lookup_num_tokens=request.num_lookup_tokens,
            streamer=first,
        )
        seconds = time.perf_counter() - started
        return SpeedRun(
            token_ids=tuple(int(token) for token in output[0, inputs.shape[1] :]),
            seconds=seconds,
            first_token_s=None if first.at is None else first.at - started,
            num_first_tokens=first.count,
        )


def _answer_requests(model_dir: Path, num_threads: int | None) -> None:
    # Answers have stdout for themselves; what a library prints goes to stderr.
    answers, sys.stdout = sys.stdout, sys.stderr
    if num_threads is not None:
        torch.set_num_threads(num_threads)
    baseline = TransformersBaseline(model_dir)
    print(msgspec.json.encode(baseline.facts).decode(), file=answers, flush=True)
    for line in sys.stdin:
        run = baseline.run(msgspec.json.decode(line, type=RivalRequest))
        print(msgspec.json.encode(run).decode(), file=answers, flush=True)


if __name__ == "__main__":
    _answer_requests(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None)
