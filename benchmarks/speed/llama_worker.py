"""llama.cpp as a rival of `benchmarks speed`, by its Python binding llama-cpp-python.

`python -P llama_worker.py SETTINGS`, an object in JSON, answers each line of stdin, a RivalRequest
as JSON, with a SpeedRun on stdout, whose first line has its WorkerFacts. It imports nothing but the
standard library and the binding, so that any interpreter that has the binding can run it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any, TextIO

import llama_cpp
from llama_cpp.llama_speculative import LlamaPromptLookupDecoding

_GGML_TYPE_F32 = 0


def load_llama(settings: dict[str, Any]) -> Any:
    """The model at `path` with room for `num_context_tokens`, and its draft model if it has one.

    An F32 model gets keys and values in F32, others in llama.cpp's default, F16.
    """
    num_pred_tokens = settings["num_pred_tokens"]
    options: dict[str, Any] = {}
    if settings["dtype"] == "F32":
        options |= {"type_k": _GGML_TYPE_F32, "type_v": _GGML_TYPE_F32}
    if num_pred_tokens:
        # Verifying drafts takes the logits of all tokens, and the binding does not see to it.
        options |= {
            "draft_model": LlamaPromptLookupDecoding(num_pred_tokens=num_pred_tokens),
            "logits_all": True,
        }
    return llama_cpp.Llama(
        settings["path"],
        n_ctx=settings["num_context_tokens"],
        n_threads=settings["num_threads"],
        n_threads_batch=settings["num_threads"],
        verbose=False,
        **options,
    )


def run_request(model: Any, request: dict[str, Any]) -> dict[str, Any]:
    """One greedy generation, with nothing left of the one before it."""
    model.reset()
    stop_token_ids = set(request["stop_token_ids"])
    token_ids: list[int] = []
    first_token_s = None
    started = time.perf_counter()
    for token_id in model.generate(request["prompt_token_ids"], temp=0.0, repeat_penalty=1.0):
        if first_token_s is None:
            first_token_s = time.perf_counter() - started
        token_ids.append(token_id)
        if token_id in stop_token_ids or len(token_ids) == request["max_tokens"]:
            break
    seconds = time.perf_counter() - started
    return {
        "token_ids": token_ids,
        "seconds": seconds,
        "first_token_s": first_token_s,
        "num_first_tokens": 1,
    }


def _answer_requests(settings: dict[str, Any], answers: TextIO) -> None:
    model = load_llama(settings)
    facts = {
        "dtype": settings["dtype"],
        "versions": {"llama-cpp-python": llama_cpp.__version__},
        "max_position": settings["num_context_tokens"],
    }
    print(json.dumps(facts), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(run_request(model, json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    # Answers have stdout for themselves; what the library prints, from C too, goes to stderr.
    own_stdout = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    _answer_requests(json.loads(sys.argv[1]), own_stdout)
